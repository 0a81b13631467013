"""A naive shop whose values differ in each run: python3 shop.py MODE

values  a ULID, a nanoid, Math.random().toString(36), a counter of the process in JSON, a generated key in
        a column of another name, and an alias with a hash
refresh the same, and the fourth request also refreshes a cache
limits  a rate limiter refuses each request after the tenth
list    a list of changing length, whose values stand in no known place
"""
import json
import os
import random
import string
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

mode = sys.argv[1]
db = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
db.autocommit = True
cursor = db.cursor()
random.seed(os.urandom(8))
requests = 0
counter = random.randrange(10, 90)


def some(alphabet, size):
    return "".join(random.choice(alphabet) for _ in range(size))


def ulid():
    base = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    now, text = int(time.time() * 1000), ""
    for _ in range(10):
        now, digit = divmod(now, 32)
        text = base[digit] + text
    return text + some(base, 16)


def read():
    cursor.execute("SELECT stock FROM items WHERE id = 1")
    return cursor.fetchone()[0]


def buy():
    global counter
    counter += 1
    if mode == "list":
        cursor.execute("SELECT %s::text[]", ([some(string.ascii_lowercase, 5) for _ in range(2 + counter % 4)],))
    alias = "s_" + some(string.digits + "abcdef", 8)
    cursor.execute(f"SELECT stock AS {alias} FROM items WHERE id = 1")
    stock = cursor.fetchone()[0]
    if stock < 1:
        return False
    if mode == "refresh" and requests == 4:
        read()
    nanoid = some(string.ascii_letters + string.digits + "_-", 21)
    cursor.execute("INSERT INTO carts (token, place) VALUES (%s, %s) RETURNING cart_number", (nanoid, "0." + some(string.ascii_lowercase + string.digits, 11)))
    number = cursor.fetchone()[0]
    cursor.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
    cursor.execute("INSERT INTO orders (ulid, cart_number, note) VALUES (%s, %s, %s)", (ulid(), number, json.dumps({"seq": counter, "cart": nanoid})))
    return True


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        global requests
        requests += 1
        if mode == "limits" and requests > 10:
            return self.reply(429)
        self.reply(200 if buy() else 409)

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
