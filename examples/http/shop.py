"""The smallest shop that `shop verify --target` can test: three routes, no database.

    python3 shop.py [PORT]          sells under a lock
    python3 shop.py [PORT] naive    reads the stock, then writes it: oversells

The default port is 9000; 0 chooses a free one.
"""
import json
import sys
import threading
import time
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

NAIVE = "naive" in sys.argv
PORT = int(sys.argv[1]) if sys.argv[1:2] and sys.argv[1].isdigit() else 9000
lock = nullcontext() if NAIVE else threading.Lock()
shop = {"stocked": 0, "left": 0, "sold": []}


def buy(purchaser):
    """Sells one unit and returns the number of the sale, or None when the product is sold out."""
    with lock:
        left = shop["left"]
        if left == 0:
            return None
        if NAIVE:
            time.sleep(0.001)  # other buyers read the same stock meanwhile
        shop["left"] = left - 1
        shop["sold"].append(purchaser)
        return len(shop["sold"])


class Shop(BaseHTTPRequestHandler):
    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_PUT(self):
        amount = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["amount"]
        shop.update(stocked=amount, left=amount, sold=[])
        self.reply(200, {})

    def do_GET(self):
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        if url.path == "/product/buy":
            sale = buy(query["purchaser"])
            self.reply(409, {"outcome": "sold_out"}) if sale is None else self.reply(200, {"id": sale})
        elif url.path == "/audit":
            n = len(shop["sold"])
            self.reply(200, {"stocked": shop["stocked"], "leftover": shop["left"], "records": n, "units_sold": n})
        else:
            self.reply(404, {})

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # the buyer has hung up


server = Server(("127.0.0.1", PORT), Shop)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
