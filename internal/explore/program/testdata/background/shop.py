"""A correct shop that also works by itself: python3 shop.py MODE

jobs   a job queue: a transaction every 100 ms
touch  the same, and it writes to the orders, too
flush  60 ms after each answer it writes down that it lives
lock   each buyer writes that down within the sale's transaction
hup    the ninth request of the process also hangs up on a command; shop.py hup FILE notes each start there
hups   so do all later ones
news   a process of its own, which each NOTIFY wakes, writes that down
"""
import select
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
from psycopg2.extras import wait_select

mode = sys.argv[1]
requests = 0


def connect():
    connection = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
    connection.autocommit = True
    return connection.cursor()


def work():
    cursor = connect()
    while True:
        time.sleep(0.1)
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM jobs WHERE state = 'new' LIMIT 1 FOR UPDATE SKIP LOCKED")
        cursor.execute("UPDATE beats SET at = now()")
        cursor.execute("COMMIT")
        if mode == "touch":
            cursor.execute("UPDATE orders SET item_id = item_id WHERE id = 0")


def listen():
    cursor = connect()
    cursor.execute("LISTEN news")
    while True:
        select.select([cursor.connection], [], [])
        cursor.connection.poll()
        while cursor.connection.notifies:
            cursor.connection.notifies.pop()
            cursor.execute("UPDATE beats SET at = now()")


def buy(cursor):
    cursor.execute("BEGIN")
    if mode == "lock":
        cursor.execute("UPDATE beats SET at = now()")
    cursor.execute("UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0")
    sold = cursor.rowcount == 1
    if sold:
        cursor.execute("INSERT INTO orders (item_id) VALUES (1)")
    cursor.execute("COMMIT")
    return sold


def hang_up():
    connection = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop", async_=1)
    wait_select(connection)
    connection.cursor().execute("SELECT 1 FROM items")
    connection.close()


def flush():
    time.sleep(0.06)
    background.execute("UPDATE beats SET at = now()")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        global requests, seller
        requests += 1
        if mode == "hup" and requests == 9 or mode == "hups" and requests >= 9:
            hang_up()
        try:
            self.reply(200 if buy(seller) else 409)
        except psycopg2.Error:  # the connection has ended
            seller = connect()
            self.reply(500)
        if mode == "flush":
            threading.Thread(target=flush).start()

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if mode == "listen":
    listen()
if mode == "news":
    subprocess.Popen([sys.executable, __file__, "listen"])
seller, background = connect(), connect()
if mode in ("jobs", "touch"):
    threading.Thread(target=work, daemon=True).start()
if len(sys.argv) > 2:
    with open(sys.argv[2], "a") as starts:
        starts.write("start\n")
ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
