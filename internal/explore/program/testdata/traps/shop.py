"""Shops that an explorer could easily be wrong about: python3 shop.py MODE

asks-twice   whoever sees a sale at first gets one, too; who asks once more is refused
gives-up     tries a lock three times, and then goes on without it
gives-in     tries a lock eight times, and then goes on without it
refuses      tries a lock eight times, and then refuses
closes       closes its connection where it has sold nothing, which frees the row
sleeps       waits for six seconds before it asks for the lock once more
ticks        waits for 0.2 s in an event loop that has a timer of a second, too
timer        waits for a timer's descriptor, and no call of it has a time-out
endless      waits for the lock's token in BLPOP, without a time-out
calls        reads, writes and inserts in a stored procedure, where nobody can see it
runs-out     waits for a second in BLPOP for a word that nobody sends, and then sells
crossed      waits in BLPOP for who waits in GET_LOCK for the first, both for seconds
at-once      asks for the price and the stock at once, on two connections, and then sells
races-itself sells twice at once, on two connections
strays       releases its lock on another connection, and then closes the one that has it
try-lock     releases a lock although it did not get it
seventh      asks for the price in every seventh sale
tables       sells under LOCK TABLES
table        sells under LOCK TABLE of PostgreSQL
tables-twice gives the tables back between the look at the stock and the sale
keeps-name   does not release the named lock if the item is sold out
keeps-row    leaves its transaction open if the item is sold out
host-pid     takes a lock again that it holds by its host name and process id
lost         waits in BLPOP, without a time-out, for a word that nobody sends
"""
import asyncio
import contextlib
import ctypes
import os
import random
import select
import socket
import struct
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import pymysql
from redis import Redis

mode = sys.argv[1]
host = "127.0.0.1"
postgres = {"closes", "keeps-row", "table"}


def connect():
    if mode in postgres:
        return psycopg2.connect(host=host, user="shop", dbname="shop")
    return pymysql.connect(host=host, user="root", database="shop", autocommit=True)


def sell(db, lock=""):
    cursor = db.cursor()
    cursor.execute("SELECT stock FROM items WHERE id = 1" + lock)
    stock = cursor.fetchone()[0]
    if stock < 1:
        return False
    cursor.execute("UPDATE items SET stock = %s WHERE id = 1", (stock - 1,))
    order(cursor)
    return True


def order(cursor):
    cursor.execute("INSERT INTO orders (item_id, buyer) VALUES (1, %s)", (str(uuid.uuid4()),))


def asks_twice():
    if redis.get("sold"):
        order(db.cursor())
        return True
    if redis.get("sold") or not redis.set("sold", "1", nx=True):
        return False
    return sell(db)


def closes():
    own = connect()
    try:
        if not sell(own, " FOR UPDATE"):
            return False
        own.commit()
        return True
    finally:
        own.close()


def locked(tries, pause, otherwise=lambda: None):
    for _ in range(tries):
        if redis.set("lock", "x", nx=True, px=5000):
            try:
                return sell(db)
            finally:
                redis.delete("lock")
        pause()
    return otherwise()


def host_pid():
    name = f"{socket.gethostname()} {os.getpid()}"
    if not redis.set("lock", name, nx=True) and redis.get("lock") != name.encode():
        return False
    try:
        return sell(db)
    finally:
        redis.delete("lock")


def races_itself():
    with ThreadPoolExecutor() as pool:
        return any(pool.map(sell, [db, other]))


def strays():
    own = connect()
    try:
        own.cursor().execute("SELECT GET_LOCK('item', 10)")
        sold = sell(own)
        other.cursor().execute("SELECT RELEASE_LOCK('item')")
        return sold
    finally:
        own.close()


def try_lock():
    cursor = db.cursor()
    cursor.execute("SELECT GET_LOCK('item', 0)")
    try:
        return cursor.fetchone()[0] == 1 and sell(db)
    finally:
        cursor.execute("SELECT RELEASE_LOCK('item')")


def timer():
    """As event loops of C++ and Erlang wait."""
    libc = ctypes.CDLL(None)
    fd = libc.timerfd_create(1, 0)
    libc.timerfd_settime(fd, 0, struct.pack("qqqq", 0, 0, 0, 50_000_000), None)
    with select.epoll() as poll:
        poll.register(fd, select.EPOLLIN)
        poll.poll()
    os.close(fd)


def endless():
    if redis.set("token", "made", nx=True):
        redis.rpush("free", "token")
    redis.blpop("free", 0)
    try:
        return sell(db)
    finally:
        redis.rpush("free", "token")


def calls():
    with db.cursor() as cursor:
        cursor.execute("CALL buy(%s)", (str(uuid.uuid4()),))
        return cursor.fetchone()[0] > 0


def waits(seconds):
    """Who comes second waits for the first, who tells nobody that it has gone."""
    if redis.set("inside", "x", nx=True):
        try:
            return sell(db)
        finally:
            redis.delete("inside")
    redis.blpop("left", seconds)
    return sell(db)


def at_once():
    """The requests are equal except for a random value at the beginning."""
    def ask(at, what):
        at.cursor().execute(f"SELECT '{uuid.uuid4()}', {what}")

    threads = [
        threading.Thread(target=ask, args=(db, "price FROM prices WHERE item_id = 1")),
        threading.Thread(target=ask, args=(other, "stock FROM items WHERE id = 1")),
    ]
    random.shuffle(threads)
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sell(db)


def seventh():
    global served
    served += 1
    if served % 7 == 0:
        db.cursor().execute("SELECT price FROM prices WHERE item_id = 1")
    return sell(db)


def keeps_name():
    cursor = db.cursor()
    cursor.execute("SELECT GET_LOCK('item', 10)")
    sold = sell(db)
    if sold:
        cursor.execute("SELECT RELEASE_LOCK('item')")
    return sold


def keeps_row():
    sold = sell(db, " FOR UPDATE")
    if sold:
        db.commit()
    return sold


def crossed():
    first = redis.incr("came") == 1
    cursor = db.cursor()
    cursor.execute("SELECT GET_LOCK('items', 60)")
    if not cursor.fetchone()[0]:
        return None
    try:
        if first:
            redis.blpop("second", 1)
        else:
            redis.rpush("second", "x")
        return sell(db)
    finally:
        cursor.execute("SELECT RELEASE_LOCK('items')")


@contextlib.contextmanager
def tables(which):
    """Table locks; each LOCK TABLES gives back those before."""
    cursor = db.cursor()
    cursor.execute("LOCK TABLES " + which)
    try:
        yield cursor
    finally:
        cursor.execute("UNLOCK TABLES")


def tables_once():
    with tables("items WRITE, orders WRITE"):
        return sell(db)


def tables_twice():
    with tables("items READ") as cursor:
        cursor.execute("SELECT stock FROM items WHERE id = 1")
        if cursor.fetchone()[0] < 1:
            return False
        cursor.execute("LOCK TABLES items WRITE, orders WRITE")
        cursor.execute("UPDATE items SET stock = stock - 1 WHERE id = 1")
        order(cursor)
        return True


def table():
    """LOCK TABLE of PostgreSQL, until the transaction ends."""
    own = connect()
    try:
        own.cursor().execute("LOCK TABLE items IN ACCESS EXCLUSIVE MODE")
        sold = sell(own)
        own.commit()
        return sold
    finally:
        own.close()


buy = {
    "runs-out": lambda: waits(1),
    "lost": lambda: waits(0),
    "crossed": crossed,
    "keeps-name": keeps_name,
    "keeps-row": keeps_row,
    "at-once": at_once,
    "seventh": seventh,
    "tables": tables_once,
    "tables-twice": tables_twice,
    "table": table,
    "asks-twice": asks_twice,
    "host-pid": host_pid,
    "gives-up": lambda: locked(3, lambda: time.sleep(0.01), lambda: sell(db)),
    "gives-in": lambda: locked(8, lambda: time.sleep(0.01), lambda: sell(db)),
    "refuses": lambda: locked(8, lambda: time.sleep(0.01)),
    "races-itself": races_itself,
    "strays": strays,
    "try-lock": try_lock,
    "closes": closes,
    "sleeps": lambda: locked(2, lambda: time.sleep(6)),
    "timer": lambda: locked(20, timer),
    "endless": endless,
    "calls": calls,
}


class Handler(BaseHTTPRequestHandler):
    answers = {True: (200, b"bought"), False: (409, b"sold out"), None: (503, b"busy")}

    def do_GET(self):
        self.reply(200, b"ok")

    def do_POST(self):
        self.reply(*self.answers[buy[mode]()])

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


async def tick():
    while True:
        await asyncio.sleep(1)


async def handle(reader, writer):
    first = await reader.readline()
    while (await reader.readline()).strip():
        pass
    status, text = 200, "ok"
    if first.startswith(b"POST"):
        status, text = 503, "busy"
        for _ in range(20):
            if redis.set("lock", "x", nx=True, px=5000):
                status, text = (200, "bought") if sell(db) else (409, "sold out")
                redis.delete("lock")
                break
            await asyncio.sleep(0.2)
    writer.write(f"HTTP/1.1 {status} .\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    await writer.drain()
    writer.close()


async def loop():
    ticking = asyncio.create_task(tick())
    async with await asyncio.start_server(handle, host, 8080) as server:
        await server.serve_forever()
    ticking.cancel()


if mode not in {"closes", "table"}:
    db = connect()
if mode == "seventh":
    served = 0
    print("started", file=open(os.environ["STARTS"], "a"))
if mode in {"at-once", "races-itself", "strays"}:
    other = connect()
if mode not in postgres and mode != "calls":
    redis = Redis(host=host)
    redis.ping()
if mode == "ticks":
    asyncio.run(loop())
else:
    ThreadingHTTPServer((host, 8080), Handler).serve_forever(poll_interval=None)
