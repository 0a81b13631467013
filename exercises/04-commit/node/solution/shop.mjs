import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

// Sells units of a product to a buyer: 'sold' or 'sold out'.
export async function buy (db, redis, product, buyer, units) {
  const key = `lock:${product}`
  const token = randomUUID()
  if (!await lock(redis, key, token)) return 'busy'
  try {
    const { amount } = await db.row('SELECT amount FROM product WHERE name = ?', product)
    if (amount < units) return 'sold out'
    await db.begin()
    await db.change('UPDATE product SET amount = ? WHERE name = ?', amount - units, product)
    await db.change('INSERT INTO purchase_history (product_name, purchaser, amount) VALUES (?, ?, ?)', product, buyer, units)
    await db.commit()
    return 'sold'
  } finally {
    await unlock(redis, key, token)
  }
}

// Waits for the lock for a while.
async function lock (redis, key, token) {
  for (let tries = 0; tries < 10; tries++) {
    if (await redis.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: 5000 } })) return true
    await sleep(20)
  }
  return false
}

async function unlock (redis, key, token) {
  const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
  await redis.eval(script, { keys: [key], arguments: [token] })
}
