"""A shop whose buyers share one process.

    python3 shop.py MODE POOL [PORT [MYSQL_PORT]]

POOL is how many connections it keeps; 0: one a request, closed with it. PORT 0 is a free one,
which it prints.
"""
import os
import queue
import sys
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pymysql

HOST = "127.0.0.1"
mutex = threading.Lock()
baskets = {"A": threading.Lock(), "B": threading.Lock()}
pool = queue.Queue()


def connect():
    user, password = os.environ.get("MYSQL_USER", "root"), os.environ.get("MYSQL_PASSWORD", "")
    return pymysql.connect(host=HOST, port=mysql_port, user=user, password=password, database="shop", autocommit=True)


@contextmanager
def cursor():
    connection = pool.get() if size else None
    try:
        connection = connection or connect()
        with connection.cursor() as c:
            yield c
    except BaseException:
        connection = None  # it may be broken: the next one makes another
        raise
    finally:
        if size:
            pool.put(connection)
        elif connection:
            connection.close()


def price(c):
    c.execute("SELECT price FROM prices WHERE item_id = 1")


def sell(c):
    """Reports whether a unit was left."""
    c.execute("SELECT stock FROM items WHERE id = 1")
    (stock,) = c.fetchone()
    if stock < 1:
        return False
    c.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
    c.execute("INSERT INTO orders (item_id, buyer) VALUES (1, %s)", (str(uuid.uuid4()),))
    return True


def naive(_):
    with cursor() as c:
        price(c)
        return sell(c)


def single(_):
    """One request after the other: the server has one thread."""
    return naive(_)


def guarded(_):
    """Sound in one process."""
    with cursor() as c:
        price(c)
        with mutex:
            return sell(c)


def whole(_):
    """The mutex around all of it."""
    with mutex, cursor() as c:
        return sell(c)


def early(_):
    """The mutex is let go before the commit."""
    with cursor() as c:
        with mutex:
            c.execute("BEGIN")
            sold = sell(c)
        c.execute("COMMIT")
        return sold


def trying(_):
    """Who finds the mutex taken is told so; it is let go before the order is written."""
    if not mutex.acquire(blocking=False):
        return None
    with cursor() as c:
        try:
            c.execute("SELECT stock FROM items WHERE id = 1")
            (stock,) = c.fetchone()
        finally:
            mutex.release()
        if stock < 1:
            return False
        c.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
        c.execute("INSERT INTO orders (item_id, buyer) VALUES (1, %s)", (str(uuid.uuid4()),))
        return True


def twice(_):
    """The same question twice in a row, so who is freed asks what its holder does."""
    with mutex, cursor() as c:
        price(c)
        price(c)
        return sell(c)


def basket(items):
    """A mutex an item, in the order of the basket."""
    with baskets[items[0]]:
        with cursor() as c:
            c.execute("SELECT price FROM prices WHERE item_id = 1")
        with baskets[items[1]], cursor() as c:
            return sell(c)


class Handler(BaseHTTPRequestHandler):
    answers = {True: (200, "bought"), False: (409, "sold out"), None: (503, "busy")}

    def do_GET(self):
        self.reply(200, "ok")

    def do_POST(self):
        items = parse_qs(urlsplit(self.path).query).get("items", ["A,B"])[0].split(",")
        try:
            answer = self.answers[buy(items)]
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
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
    buy, size = globals()[sys.argv[1]], int(sys.argv[2])
    port, mysql_port = (int(n) for n in (sys.argv[3:] + ["8080", "3306"][len(sys.argv) - 3:]))
    for _ in range(size):
        pool.put(None)
    server = HTTPServer if buy is single else ThreadingHTTPServer
    server = server((HOST, port), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
