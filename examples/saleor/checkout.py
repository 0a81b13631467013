"""Saleor's checkout of 2016, as far as stock goes, in words of our own.

    python3 checkout.py as-it-was | mended

https://github.com/saleor/saleor/issues/543 (17 August 2016): "Concurrent checkouts
allocate more stocks to customers than the quantity available". An order did not
lower the quantity; it raised quantity_allocated, and what was left was the
difference. A checkout read both, compared, and then let the server add:

    UPDATE ... SET quantity_allocated = quantity_allocated + 1

No update is lost that way. But what was compared is old by then, and neither the
transaction around it nor the addition in the server compares again. `mended` reads
under FOR UPDATE (Django's select_for_update), so that it is not old.

Tables and columns are named as Django named them; addresses, payments and the cart
are left out. Saleor runs on PostgreSQL, and so does this.
"""
import os
import select
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import psycopg2

HOST = "127.0.0.1"
LOCKS = {"as-it-was": "", "mended": " FOR UPDATE"}


class InsufficientStock(Exception):
    pass


def connect():
    return psycopg2.connect(host=HOST, port=os.environ.get("POSTGRES_PORT", 5432), user="shop", dbname="shop")


class Database:
    """One connection, as a worker of Django keeps it; another when it broke."""

    def __init__(self):
        self.connection = connect()

    @contextmanager
    def atomic(self):
        # The server says nothing to an idle connection, unless it hangs up.
        if self.connection.closed or select.select([self.connection], [], [], 0)[0]:
            self.connection = connect()
        with self.connection, self.connection.cursor() as cursor:  # commits, or rolls back
            yield cursor


def check_quantity(available, quantity):
    if quantity > available:
        raise InsufficientStock


def create_order(stock, quantity):
    """Checkout.create_order: the stock is chosen, the item ordered, the quantity allocated."""
    with database.atomic() as cursor:
        cursor.execute("SELECT quantity, quantity_allocated FROM product_stock WHERE id = %s" + lock, (stock,))
        in_stock, allocated = cursor.fetchone()
        check_quantity(max(in_stock - allocated, 0), quantity)
        cursor.execute("INSERT INTO order_ordereditem (stock_id, quantity) VALUES (%s, %s)", (stock, quantity))
        cursor.execute(
            "UPDATE product_stock SET quantity_allocated = quantity_allocated + %s WHERE id = %s", (quantity, stock)
        )


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, "ok") if self.path == "/healthz" else self.reply(404, "not found")

    def do_POST(self):
        url = urlsplit(self.path)
        if url.path != "/buy":
            return self.reply(404, "not found")
        try:
            create_order(stock=int(parse_qs(url.query)["item"][0]), quantity=1)
        except InsufficientStock:
            return self.reply(409, "sold out")
        except Exception as error:
            print(repr(error), file=sys.stderr)
            return self.reply(500, "error")
        self.reply(200, "bought")

    def reply(self, status, text):
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    lock = LOCKS[sys.argv[1] if len(sys.argv) > 1 else "as-it-was"]
    database = Database()
    # None: wait for a connection, and do not wake up twice a second to look for a shutdown.
    HTTPServer((HOST, 8080), Handler).serve_forever(poll_interval=None)
