// Sells units of a product to a buyer: 'sold' or 'sold out'.
export async function buy (db, redis, product, buyer, units) {
  const key = `lock:${product}`
  if (!await redis.set(key, '1', { condition: 'NX' })) throw new Error('the lock is taken')
  try {
    return await sell(db, product, buyer, units)
  } finally {
    await redis.del(key)
  }
}

// The naive sale. It is right while nobody else sells the product.
async function sell (db, product, buyer, units) {
  const { amount } = await db.row('SELECT amount FROM product WHERE name = ?', product)
  if (amount < units) return 'sold out'
  await db.begin()
  await db.change('UPDATE product SET amount = ? WHERE name = ?', amount - units, product)
  await db.change('INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (?, ?, ?)', product, buyer, units)
  await db.commit()
  return 'sold'
}
