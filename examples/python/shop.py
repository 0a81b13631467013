"""A small shop: PyMySQL or psycopg2 under it, redis-py for the lock.

    python3 shop.py naive | for-update | redis-lock [mysql | postgres]
"""
import argparse
import os
import queue
import select
import sys
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


class Pool:
    """Connections in autocommit mode; one that fails is closed, not kept."""

    def __init__(self, connect, revive):
        self.connect, self.revive = connect, revive
        self.idle = queue.LifoQueue()
        self.idle.put(connect())

    @contextmanager
    def cursor(self):
        try:
            connection = self.revive(self.idle.get_nowait())
        except queue.Empty:
            connection = self.connect()
        try:
            with connection.cursor() as cursor:
                yield cursor
        except BaseException:
            connection.close()  # the server rolls back
            raise
        self.idle.put(connection)


def mysql():
    import pymysql

    def connect():
        port = int(os.environ.get("MYSQL_PORT", 3306))
        return pymysql.connect(host=HOST, port=port, user="root", database="shop", autocommit=True)

    def revive(connection):
        connection.ping(reconnect=True)
        return connection

    return Pool(connect, revive)


def postgres():
    import psycopg2

    def connect():
        port = int(os.environ.get("POSTGRES_PORT", 5432))
        connection = psycopg2.connect(host=HOST, port=port, user="shop", dbname="shop")
        connection.autocommit = True
        return connection

    def revive(connection):
        # The server says nothing to an idle connection, unless it hangs up.
        if select.select([connection], [], [], 0)[0]:
            connection.close()
            return connect()
        return connection

    return Pool(connect, revive)


def sell(cursor, item, lock=""):
    """Reports whether a unit was left."""
    cursor.execute("SELECT stock FROM items WHERE id = %s" + lock, (item,))
    row = cursor.fetchone()
    if row is None or row[0] < 1:
        return False
    cursor.execute("UPDATE items SET stock = %s WHERE id = %s", (row[0] - 1, item))
    cursor.execute("INSERT INTO orders (item_id, buyer) VALUES (%s, %s)", (item, str(uuid.uuid4())))
    return True


def naive(item):
    with pool.cursor() as cursor:
        return sell(cursor, item)


def for_update(item):
    with pool.cursor() as cursor:
        cursor.execute("BEGIN")
        sold = sell(cursor, item, " FOR UPDATE")
        cursor.execute("COMMIT")
        return sold


def redis_lock(item):
    """As naive, under a lease of five seconds; None when the lock stays taken."""
    key, token = f"lock:{item}", str(uuid.uuid4())
    for _ in range(10):
        if redis.set(key, token, nx=True, px=5000):
            try:
                return naive(item)
            finally:
                redis.eval(RELEASE, 1, key, token)
        time.sleep(0.02)
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers = {True: (200, "bought"), False: (409, "sold out"), None: (503, "busy")}

    def do_GET(self):
        self.reply(200, "ok") if self.path == "/healthz" else self.reply(404, "not found")

    def do_POST(self):
        url = urlsplit(self.path)
        if url.path != "/buy":
            return self.reply(404, "not found")
        try:
            answer = self.answers[buy(int(parse_qs(url.query)["item"][0]))]
        except Exception as error:
            print(repr(error), file=sys.stderr)
            answer = 500, "error"
        self.reply(*answer)

    def reply(self, status, text):
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    modes = {"naive": naive, "for-update": for_update, "redis-lock": redis_lock}
    databases = {"mysql": mysql, "postgres": postgres}
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=modes)
    parser.add_argument("database", choices=databases, nargs="?", default="mysql")
    args = parser.parse_args()

    buy, pool = modes[args.mode], databases[args.database]()
    if args.mode == "redis-lock":
        from redis import Redis

        redis = Redis(host=HOST, port=int(os.environ.get("REDIS_PORT", 6379)))
        redis.ping()
    # None: wait for a connection, and do not wake up twice a second to look for a shutdown.
    ThreadingHTTPServer((HOST, 8080), Handler).serve_forever(poll_interval=None)
