// Sells units of a product to a buyer: 'sold' or 'sold out'.
export async function buy (db, redis, product, buyer, units) {
  await db.begin()
  const rows = await db.change('UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?', units, product, units)
  if (rows === 0) { // no row was changed: too little was left
    await db.rollback()
    return 'sold out'
  }
  await db.change('INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (?, ?, ?)', product, buyer, units)
  await db.commit()
  return 'sold'
}
