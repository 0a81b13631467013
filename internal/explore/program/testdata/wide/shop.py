"""A shop that sends many wide statements, as an ORM does.

A purchase reads its session, settings, tax rates and translations, then the stock.
"""
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

COLUMNS = ["id", "stockLocationId"] + ["a%02d" % n for n in range(1, 31)] + ["updatedAt", "stockOnHand", "stockAllocated"]
STOCK = "SELECT %s FROM \"stock_level\" \"StockLevel\" LEFT JOIN \"stock_location\" \"StockLevel__StockLevel_stockLocation\" ON \"StockLevel__StockLevel_stockLocation\".\"id\"=\"StockLevel\".\"stockLocationId\" WHERE ((\"StockLevel\".\"id\" = 5)) LIMIT 1" % ", ".join(
    '"StockLevel"."%s" AS "StockLevel_%s"' % (c, c) for c in COLUMNS)


def buy():
    db = psycopg2.connect(host="127.0.0.1", user="shop", dbname="shop")
    cursor = db.cursor()
    cursor.execute('SELECT "Session"."id" AS "Session_id", "Session"."token" AS "Session_token" FROM "session" "Session" WHERE "Session"."id" = 1')
    for n in range(1, 41):
        cursor.execute('SELECT "Setting"."id" AS "Setting_id", "Setting"."key" AS "Setting_key", "Setting"."value" AS "Setting_value" FROM "setting" "Setting" WHERE ("Setting"."id" = %s)', (n,))
    db.commit()
    for n in range(1, 21):
        cursor.execute("SELECT id, name, value FROM tax_rate WHERE id = %s", (n,))
    cursor.execute(STOCK)
    row = dict(zip(COLUMNS, cursor.fetchone()))
    if row["stockOnHand"] - row["stockAllocated"] < 1:
        db.rollback()
        return False
    for n in range(1, 31):
        cursor.execute("SELECT text FROM translation WHERE id = %s", (n,))
    cursor.execute('UPDATE "stock_level" SET "stockAllocated" = %s, "updatedAt" = CURRENT_TIMESTAMP WHERE "id" IN (5)', (row["stockAllocated"] + 1,))
    cursor.execute('INSERT INTO "order_line"("id", "createdAt", "quantity", "stockLevelId", "buyerNote") VALUES (DEFAULT, DEFAULT, %s, %s, %s) RETURNING "id", "createdAt"', (1, 5, "a note that makes the statement longer than a line"))
    db.commit()
    return True


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        sold = buy()
        body = b"sold" if sold else b"sold out"
        self.send_response(200 if sold else 409)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever(poll_interval=None)
