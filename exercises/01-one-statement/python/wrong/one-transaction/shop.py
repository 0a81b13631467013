def buy(db, redis, product, buyer, units):
    """Sells units of a product to a buyer: "sold" or "sold out"."""
    db.begin()
    (amount,) = db.row("SELECT amount FROM product WHERE name = %s", product)
    if amount < units:
        db.rollback()
        return "sold out"
    db.change("UPDATE product SET amount = %s WHERE name = %s", amount - units, product)
    db.change("INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (%s, %s, %s)", product, buyer, units)
    db.commit()
    return "sold"
