"""A shop that sends several statements at once, each on a connection of its own: python3 shop.py MODE BUYER

check: the check and the order are sent at once. A buyer that sees another order removes its own.
first: the first of two answers decides from which item to sell. The second item is sold without a check.
reads: eight settings are read at once, and then the unit is sold correctly.
"""
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

TAKE = "UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0"


def connect():
    db = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
    db.autocommit = True
    return db.cursor()


def run(cursor, statement):
    cursor.execute(statement)
    return cursor.fetchone()[0] if cursor.description else cursor.rowcount


def at_once(*statements):
    """Returns the numbers of the statements in the order of the answers, and the result of each statement."""
    order, results = [], {}

    def send(n):
        results[n] = run(cursors[n], statements[n])
        order.append(n)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(len(statements))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return order, results


def check(buyer):
    insert = f"INSERT INTO orders VALUES ({buyer})"
    _, results = at_once(f"SELECT count(*) FROM orders WHERE buyer <> {buyer}", insert)
    if results[0] > 0:
        run(cursors[0], f"DELETE FROM orders WHERE buyer = {buyer}")
    return results[0] == 0


def first(buyer):
    order, _ = at_once("SELECT value FROM settings WHERE id = 1", "SELECT value FROM settings WHERE id = 2")
    return sell(buyer, "UPDATE items SET stock = 0 WHERE id = 2" if order[0] == 1 else TAKE)


def reads(buyer):
    at_once(*(f"SELECT value FROM settings WHERE id = {n}" for n in range(1, len(cursors) + 1)))
    return sell(buyer, TAKE)


def sell(buyer, statement):
    if not run(cursors[0], statement):
        return False
    run(cursors[0], f"INSERT INTO orders VALUES ({buyer})")
    return True


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        self.reply(200 if sale(int(sys.argv[2])) else 409)

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_):
        pass


sale = {"check": check, "first": first, "reads": reads}[sys.argv[1]]
cursors = [connect() for _ in range(8)]
ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
