"""A shop with a login, for tests of shop scan: python3 shop.py

POST /login hands out a token. POST /buy reads the stock and writes it back. POST /visit counts in Redis. GET /profile
reads the buyer's own row. POST /lottery answers another status each time. Without a token, each answers 401.
"""
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pymysql
from redis import Redis

cursor = pymysql.connect(host="127.0.0.1", user="root", database="shop", autocommit=True).cursor()
redis = Redis(host="127.0.0.1")


def one(sql, *values):
    cursor.execute(sql, values)
    return cursor.fetchone()


def login(user):
    token = secrets.token_urlsafe(16)
    cursor.execute("INSERT INTO sessions (token, user_id) SELECT %s, id FROM users WHERE name = %s", (token, user))
    return 200, {"data": {"token": token}}


def buy(user):
    stock = one("SELECT stock FROM items WHERE id = 1")[0]
    if stock < 1:
        return 409, {"error": "sold out"}
    cursor.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
    cursor.execute("INSERT INTO orders (user_id) VALUES (%s)", (user,))
    return 201, {"order": cursor.lastrowid}


def visit(_):
    return 200, {"visits": redis.incr("visits")}


def profile(user):
    return 200, {"name": one("SELECT name FROM users WHERE id = %s", user)[0]}


def lottery(_):
    cursor.execute("UPDATE items SET stock = stock + 1")
    return 200 + secrets.randbelow(90), {}


routes = {"POST /buy": buy, "POST /visit": visit, "GET /profile": profile, "POST /lottery": lottery}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/healthz":
            return self.reply(200, {})
        if self.path == "/login":
            return self.reply(*login(json.loads(body)["user"]))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        session = token and one("SELECT user_id FROM sessions WHERE token = %s", token)
        if not session:
            return self.reply(401, {"error": "log in"})
        self.reply(*routes[f"{self.command} {self.path}"](session[0]))

    def reply(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


cursor.execute("SELECT 1")
redis.ping()
ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
