import time


def buy(db, redis, product, buyer, units):
    """Sells units of a product to a buyer: "sold" or "sold out"."""
    key = "lock:" + product
    if not lock(redis, key):
        return "busy"
    try:
        return sell(db, product, buyer, units)
    finally:
        redis.delete(key)


def lock(redis, key):
    """Waits for the lock for a while."""
    for _ in range(10):
        if redis.set(key, "1", nx=True):
            return True
        time.sleep(0.02)
    return False


def sell(db, product, buyer, units):
    """The naive sale. It is correct only while no other buyer sells the product."""
    (amount,) = db.row("SELECT amount FROM product WHERE name = %s", product)
    if amount < units:
        return "sold out"
    db.begin()
    db.change("UPDATE product SET amount = %s WHERE name = %s", amount - units, product)
    db.change("INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (%s, %s, %s)", product, buyer, units)
    db.commit()
    return "sold"
