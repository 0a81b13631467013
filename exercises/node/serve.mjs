// Serves shop.mjs over HTTP. The judge starts one such process for each buyer.
//
//   npm install, once
import http from 'node:http'
import mysql from 'mysql2/promise'
import { createClient } from 'redis'
import * as shop from './shop.mjs'

const host = '127.0.0.1'
const refused = [1205, 1213] // lock wait timeout, deadlock: a correct program may get them, too
const status = { sold: 200, 'sold out': 409, busy: 503 }

// One connection, each statement a transaction of its own unless begin was called.
const pool = mysql.createPool({ host, port: Number(process.env.MYSQL_PORT ?? 3306), user: 'root', database: 'shop', connectionLimit: 1 })
const db = {
  row: async (sql, ...values) => (await pool.query(sql, values))[0][0], // the first row, or undefined
  change: async (sql, ...values) => (await pool.query(sql, values))[0].affectedRows, // how many rows were changed
  begin: () => pool.query('BEGIN'),
  commit: () => pool.query('COMMIT'),
  rollback: () => pool.query('ROLLBACK')
}
const redis = createClient({ socket: { host, port: Number(process.env.REDIS_PORT ?? 6379) } })
redis.on('error', err => console.error(err.message)) // it reconnects
await redis.connect()
await db.row('SELECT 1') // connect now, not with the first buyer

// Another holder: the earlier lease has expired, and this one has the lock now.
async function other (product) {
  const key = `lock:${product}`
  await redis.set(key, 'another', { expiration: { type: 'PX', value: 60000 } })
  if (await redis.get(key) !== 'another') await db.change("INSERT INTO wrong (what) VALUES ('the lock of another holder was deleted')")
  await redis.del(key)
  return 'sold'
}

// Takes the lock with shop.mjs, checks it, and releases it.
async function lease (product) {
  const key = `lock:${product}`
  const token = await shop.lock(redis, key)
  if (token === undefined) return 'busy'
  if (await redis.pTTL(key) === -1) await db.change("INSERT INTO wrong (what) VALUES ('the lock never expires')")
  await shop.unlock(redis, key, token)
  return 'sold'
}

// The buyer asks several times in a row.
async function sells (times, ...order) {
  const answers = []
  for (let n = 0; n < times; n++) answers.push(await sell(...order))
  return answers.includes('sold') ? 'sold' : answers.at(-1)
}

// Returns the answer of shop.mjs. A wait without success and a wrong refusal are stored as errors.
async function sell (product, buyer, units) {
  const answer = await shop.buy(db, redis, product, buyer, units)
  if (answer === 'busy') await db.change("INSERT INTO wrong (what) VALUES ('a buyer has waited for the lock and did not get it')")
  if (answer === 'sold out' && (await db.row('SELECT amount FROM product WHERE name = ?', product)).amount >= units) {
    await db.change("INSERT INTO wrong (what) VALUES ('a buyer was told sold out, and there is enough')")
  }
  return answer
}

// Stores an exception of shop.mjs as an error, unless the database is gone or has refused the statement.
async function raised (err) {
  try {
    await db.rollback()
    if (refused.includes(err?.errno)) return
    await db.change('INSERT INTO wrong (what) VALUES (?)', `the code raised ${String(err).slice(0, 200)}`)
  } catch (gone) {
    console.error(gone)
  }
}

http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost')
  const asked = name => url.searchParams.get(name)
  const reply = (code, text) => response.writeHead(code).end(`${text}\n`)
  if (request.method !== 'POST') return reply(200, 'ok')
  try {
    const answer = url.pathname === '/other'
      ? await other(asked('product'))
      : url.pathname === '/lease' ? await lease(asked('product')) : await sells(Number(asked('times') ?? 1), asked('product'), asked('buyer'), Number(asked('units') ?? 1))
    reply(status[answer], answer)
  } catch (err) {
    console.error(err)
    await raised(err)
    reply(500, String(err))
  }
}).listen(8080, host)
