// Sells units of a product to a buyer: 'sold' or 'sold out'.
export async function buy (db, redis, product, buyer, units) {
  await db.begin()
  const { amount } = await db.row('SELECT amount FROM product WHERE name = ?', product)
  if (amount < units) {
    await db.rollback()
    return 'sold out'
  }
  await db.change('UPDATE product SET amount = ? WHERE name = ?', amount - units, product)
  await db.change('INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (?, ?, ?)', product, buyer, units)
  await db.commit()
  return 'sold'
}
