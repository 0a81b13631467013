"""A shop that sells by the statements in SQL: python3 shop.py mysql|postgres

SQL has the statements of a sale, one per line; {0} and {1} are the items of POST /buy?0,1.
The shop answers 200 if each statement that writes has changed a row, and otherwise 409. If
the server refuses a statement, it answers FAILS; "": it closes the connection without an answer. It
ignores the refusal of a statement after "?". If the request has three items, the lines after "|" run at
the same time, on another connection.
"""
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import pymysql

FAILS = os.environ.get("FAILS", "500")


def connect():
    if sys.argv[1] == "postgres":
        db = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
        db.autocommit = True
        return db
    return pymysql.connect(host="127.0.0.1", user="root", database="shop", autocommit=None)


def run(cursor, statements, items):
    for statement in statements:
        try:
            cursor.execute(statement.format(*items))
        except psycopg2.Error:
            pass


def sell(cursor, items):
    statements = os.environ["SQL"].splitlines()
    aside = [one.removeprefix("|") for one in statements if one.startswith("|")]
    thread = threading.Thread(target=run, args=(server.aside.cursor(), aside, items)) if len(items) > 2 else None
    for statement in statements:
        if statement.startswith("|"):
            if thread and not thread.ident:
                thread.start()
            continue
        try:
            cursor.execute(statement.removeprefix("?").format(*items))
        except psycopg2.Error:
            if not statement.startswith("?"):
                raise
        if statement.startswith(("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE")) and cursor.rowcount < 1:
            cursor.execute("ROLLBACK")
            return False
    if thread:
        thread.join()
    return True


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        with self.server.db.cursor() as cursor:
            try:
                self.reply(200 if sell(cursor, self.path.partition("?")[2].split(",")) else 409)
            except (psycopg2.Error, pymysql.Error) as error:
                print(repr(error), file=sys.stderr)
                cursor.execute("ROLLBACK")
                if FAILS:
                    self.reply(int(FAILS))

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 8080), Handler)
server.db = connect()
if "|" in os.environ["SQL"]:
    server.aside = connect()
server.serve_forever(poll_interval=None)
