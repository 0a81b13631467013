"""A shop that keeps its stock in its own memory, too: python3 shop.py

POST /buy answers 200 to a sale and to a refusal, and says in JSON which it was. POST /reset reads the
stock again. Each instance writes what it has sold to a file in its HOME, and sells nothing if another
instance has written there. POST /keep also sells after a restart, and keeps a named lock.
"""
import json
import os
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pymysql

db = pymysql.connect(host="127.0.0.1", user="root", database="shop", autocommit=True)
cursor = db.cursor()
stock = 0
me = secrets.token_hex(8)  # two instances may have the same process id
ledger = os.path.join(os.path.expanduser("~"), "ledger")


def mine():
    if not os.path.exists(ledger):
        with open(ledger, "w") as f:
            f.write(me)
    with open(ledger) as f:
        return f.read() == me


def buy():
    global stock
    if stock < 1:
        return False
    stock -= 1
    cursor.execute("UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0")
    if cursor.rowcount < 1:
        return False
    cursor.execute("INSERT INTO orders (item_id, buyer) VALUES (1, 'x')")
    return True


def reset():
    global stock
    cursor.execute("UPDATE items SET stock = 1")
    cursor.execute("DELETE FROM orders")
    cursor.execute("SELECT stock FROM items WHERE id = 1")
    stock = cursor.fetchone()[0]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, {})

    def do_POST(self):
        if self.path == "/reset":
            reset()
            return self.reply(200, {})
        if self.path == "/broken":
            return self.reply(500, {"error": "no reset"})
        if self.path == "/keep":
            cursor.execute("SELECT GET_LOCK('kept', 0)")
        sold = (self.path == "/keep" or mine()) and buy()
        self.reply(200, {"data": {"placeOrder": {"id": 1}}} if sold else {"errors": [{"message": "sold out"}]})

    def reply(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
