"""A shop that sells two items at once, locks them as they come, and answers 500 to the
buyer whom PostgreSQL takes for a deadlock's victim:

    POST /buy?1,2    POST /buy?2,1
"""
import http.server
import sys

import psycopg2


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200)

    def do_POST(self):
        items = self.path.partition("?")[2].split(",")
        connection = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
        try:
            self.reply(200 if self.sell(connection, items) else 409)
        except psycopg2.Error as error:
            print(repr(error), file=sys.stderr)
            self.reply(500)
        finally:
            connection.close()

    def sell(self, connection, items):
        with connection.cursor() as cursor:
            for item in items:
                cursor.execute("SELECT stock FROM items WHERE id = %s FOR UPDATE", (item,))
                if cursor.fetchone()[0] < 1:
                    connection.rollback()
                    return False
                cursor.execute("SELECT pg_sleep(0.3)")  # whoever has the other one has it by now
            cursor.execute("UPDATE items SET stock = stock - 1")
            cursor.execute("INSERT INTO orders (item_id, buyer) SELECT id, 'somebody' FROM items")
        connection.commit()
        return True

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer.request_queue_size = 1000
http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
