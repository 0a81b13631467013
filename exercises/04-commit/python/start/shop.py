import time
import uuid


def buy(db, redis, product, buyer, units):
    """Sells units of a product to a buyer: "sold" or "sold out"."""
    key, token = "lock:" + product, uuid.uuid4().hex
    if not lock(redis, key, token):
        return "busy"
    try:
        db.begin()
        (amount,) = db.row("SELECT amount FROM product WHERE name = %s", product)
        if amount < units:
            db.rollback()
            return "sold out"
        db.change("UPDATE product SET amount = %s WHERE name = %s", amount - units, product)
        db.change("INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (%s, %s, %s)", product, buyer, units)
    finally:
        unlock(redis, key, token)
    db.commit()
    return "sold"


def lock(redis, key, token):
    """Waits for the lock for a while."""
    for _ in range(10):
        if redis.set(key, token, nx=True, px=5000):
            return True
        time.sleep(0.02)
    return False


def unlock(redis, key, token):
    script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
    redis.eval(script, 1, key, token)
