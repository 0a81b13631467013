"""A shop behind PgBouncer in transaction mode, whose buyers share one process: python3 shop.py MODE

session      takes a lock of the session, which PgBouncer may release on another connection
transaction  takes a lock of the transaction
"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

mode = sys.argv[1]


def sell(c):
    c.execute("SELECT stock FROM items WHERE id = 1")
    (stock,) = c.fetchone()
    if stock < 1:
        return False
    c.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
    c.execute("INSERT INTO orders (item_id, buyer) VALUES (1, 'x')")
    return True


def buy():
    db = psycopg2.connect(host="127.0.0.1", port=6432, user="shop", dbname="shop")
    try:
        if mode == "session":
            db.autocommit = True
            c = db.cursor()
            c.execute("SELECT pg_advisory_lock(1)")
            try:
                return sell(c)
            finally:
                c.execute("SELECT pg_advisory_unlock(1)")
        with db, db.cursor() as c:
            c.execute("SELECT pg_advisory_xact_lock(1)")
            return sell(c)
    finally:
        db.close()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        self.reply(200 if buy() else 409)

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
