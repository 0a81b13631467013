"""A shop that is sound to two buyers, with a habit that a rush meets:

    python3 shop.py serial | ends | late | tires

serial: one sale at a time, by a lock on a file.
ends: it dies at its 40th request.
late: it answers before its order is there.
tires: from its 40th request on it does not look at the stock any more.
"""
import fcntl
import http.server
import itertools
import os
import queue
import socket
import sys

import pymysql

habit = sys.argv[1]
ORDER = "INSERT INTO orders (item_id, buyer) VALUES (1, 'somebody')"
pool = queue.LifoQueue()
numbers = itertools.count(1)  # of requests that sell


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        number = next(numbers)
        if habit == "ends" and number == 40:
            os._exit(7)
        lock = open(__file__)
        if habit == "serial":
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        try:
            connection = pool.get_nowait()
        except queue.Empty:
            connection = pymysql.connect(host="127.0.0.1", user="root", database="shop", autocommit=True)
        with connection.cursor() as cursor:
            self.sell(cursor, number)
        pool.put(connection)
        lock.close()

    def sell(self, cursor, number):
        cursor.execute("BEGIN")
        cursor.execute("SELECT stock FROM items WHERE id = 1 FOR UPDATE")
        sold = cursor.fetchone()[0] > 0 or habit == "tires" and number >= 40
        if sold:
            cursor.execute("UPDATE items SET stock = stock - 1 WHERE id = 1")
            if habit != "late":
                cursor.execute(ORDER)
        cursor.execute("COMMIT")
        self.reply(200 if sold else 409)
        if sold and habit == "late":
            cursor.execute("DO SLEEP(0.5)")  # far longer than the others need to be answered
            cursor.execute(ORDER)

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        if habit == "late":
            self.connection.shutdown(socket.SHUT_WR)

    def log_message(self, *_):
        pass


Server = http.server.ThreadingHTTPServer
Server.request_queue_size = 1000
Server(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
