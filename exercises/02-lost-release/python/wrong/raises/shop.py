def buy(db, redis, product, buyer, units):
    """Sells units of a product to a buyer: "sold" or "sold out"."""
    key = "lock:" + product
    if not redis.set(key, "1", nx=True):
        raise RuntimeError("the lock is taken")
    try:
        return sell(db, product, buyer, units)
    finally:
        redis.delete(key)


def sell(db, product, buyer, units):
    """The naive sale. It is right while nobody else sells the product."""
    (amount,) = db.row("SELECT amount FROM product WHERE name = %s", product)
    if amount < units:
        return "sold out"
    db.begin()
    db.change("UPDATE product SET amount = %s WHERE name = %s", amount - units, product)
    db.change("INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (%s, %s, %s)", product, buyer, units)
    db.commit()
    return "sold"
