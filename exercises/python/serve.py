"""Serves shop.py over HTTP. The judge starts one such process for each buyer.

    apt install python3-pymysql python3-redis, or pip install pymysql redis
"""
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

try:
    import pymysql
    import redis as redis_py
except ImportError as missing:
    sys.exit(f"{sys.executable} has no module {missing.name}: pip install pymysql redis for it, or name another python in app.yaml")

import shop

HOST = "127.0.0.1"
REFUSED = (1205, 1213)  # lock wait timeout, deadlock: a correct program may get them, too
STATUS = {"sold": 200, "sold out": 409, "busy": 503}


class Database:
    """One connection, each statement a transaction of its own unless begin was called."""

    def __init__(self):
        port = int(os.environ.get("MYSQL_PORT", 3306))
        self.connection = pymysql.connect(host=HOST, port=port, user="root", database="shop", autocommit=True)

    def row(self, sql, *values):
        """The first row, or None."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchone()

    def change(self, sql, *values):
        """The number of changed rows."""
        with self.connection.cursor() as cursor:
            return cursor.execute(sql, values)

    def begin(self):
        self.change("BEGIN")

    def commit(self):
        self.change("COMMIT")

    def rollback(self):
        self.change("ROLLBACK")


def other(database, redis, product):
    """Another holder: the earlier lease has expired, and this one has the lock now."""
    key = "lock:" + product
    redis.set(key, "another", px=60000)
    if redis.get(key) != "another":
        database.change("INSERT INTO wrong (what) VALUES ('the lock of another holder was deleted')")
    redis.delete(key)


def lease(database, redis, product):
    """Takes the lock with shop.py, checks it, and releases it."""
    key = "lock:" + product
    token = shop.lock(redis, key)
    if token is None:
        return "busy"
    if redis.pttl(key) == -1:  # a key without expiry
        database.change("INSERT INTO wrong (what) VALUES ('the lock never expires')")
    shop.unlock(redis, key, token)
    return "sold"


def raised(database, error):
    """Stores an exception of shop.py as an error, unless the database is gone or has refused the statement."""
    try:
        database.connection.ping(reconnect=True)
        database.rollback()
        if isinstance(error, pymysql.MySQLError) and error.args and error.args[0] in REFUSED:
            return
        database.change("INSERT INTO wrong (what) VALUES (%s)", "the code raised " + repr(error)[:200])
    except pymysql.MySQLError as gone:
        print(repr(gone), file=sys.stderr)


def sell(database, redis, asked):
    """Returns the answer of shop.py. A wait without success and a wrong refusal are stored as errors."""
    units = int(asked.get("units", 1))
    answer = shop.buy(database, redis, asked["product"], asked["buyer"], units)
    if answer == "busy":
        database.change("INSERT INTO wrong (what) VALUES ('a buyer has waited for the lock and did not get it')")
    if answer == "sold out" and database.row("SELECT amount FROM product WHERE name = %s", asked["product"])[0] >= units:
        database.change("INSERT INTO wrong (what) VALUES ('a buyer was told sold out, and there is enough')")
    return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply(200, "ok")

    def do_POST(self):
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        database.connection.ping(reconnect=True)
        try:
            if url.path == "/other":
                other(database, redis, asked["product"])
                answer = "sold"
            elif url.path == "/lease":
                answer = lease(database, redis, asked["product"])
            else:
                answers = [sell(database, redis, asked) for _ in range(int(asked.get("times", 1)))]
                answer = "sold" if "sold" in answers else answers[-1]
            self.reply(STATUS[answer], answer)
        except Exception as error:
            print(repr(error), file=sys.stderr)
            raised(database, error)
            self.reply(500, repr(error))

    def reply(self, status, text):
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    database = Database()
    redis = redis_py.Redis(host=HOST, port=int(os.environ.get("REDIS_PORT", 6379)), decode_responses=True)
    redis.ping()
    # None: wait for a connection, and do not wake up twice a second to look for a shutdown.
    ThreadingHTTPServer((HOST, 8080), Handler).serve_forever(poll_interval=None)
