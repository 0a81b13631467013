def buy(db, redis, product, buyer, units):
    """Sells units of a product to a buyer: "sold" or "sold out"."""
    db.begin()
    rows = db.change("UPDATE product SET amount = amount - %s WHERE name = %s AND amount >= %s", units, product, units)
    if rows == 0:  # no row was changed: too little was left
        db.rollback()
        return "sold out"
    db.change("INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (%s, %s, %s)", product, buyer, units)
    db.commit()
    return "sold"
