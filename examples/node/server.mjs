// A small shop: mysql2 or pg under it, node-redis for the lock.
//
//   node server.mjs naive | for-update | prepared | redis-lock [mysql | postgres]
import { randomUUID } from 'node:crypto'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { createClient } from 'redis'

const [mode = 'naive', database = 'mysql'] = process.argv.slice(2)
const host = '127.0.0.1'

function openMysql () {
  const pool = mysql.createPool({ host, port: process.env.MYSQL_PORT ?? 3306, user: 'root', database: 'shop', connectionLimit: 4 })
  const method = mode === 'prepared' ? 'execute' : 'query' // text, or a prepared statement
  const on = connection => async (sql, ...values) => (await connection[method](sql, values))[0]

  async function transaction (work) {
    const connection = await pool.getConnection()
    try {
      await connection.beginTransaction()
      const result = await work(on(connection))
      await connection.commit()
      connection.release()
      return result
    } catch (err) {
      connection.destroy() // the server rolls back
      throw err
    }
  }
  return { query: on(pool), transaction }
}

function openPostgres () {
  const pool = new pg.Pool({ host, port: process.env.POSTGRES_PORT ?? 5432, user: 'shop', database: 'shop', max: 4, idleTimeoutMillis: 0 })
  // A connection that breaks leaves the pool by itself; without a listener the
  // event would end the process.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  const on = client => async (sql, ...values) => {
    let n = 0
    return (await client.query(sql.replace(/\?/g, () => `$${++n}`), values)).rows
  }

  async function transaction (work) {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const result = await work(on(client))
      await client.query('COMMIT')
      client.release()
      return result
    } catch (err) {
      client.release(err) // closed, so the server rolls back
      throw err
    }
  }
  return { query: on(pool), transaction }
}

// sell reports whether a unit was left.
async function sell (query, item, lock = '') {
  const [row] = await query(`SELECT stock FROM items WHERE id = ?${lock}`, item)
  if (!row || row.stock < 1) return false
  await query('UPDATE items SET stock = ? WHERE id = ?', row.stock - 1, item)
  await query('INSERT INTO orders (item_id, buyer) VALUES (?, ?)', item, randomUUID())
  return true
}

const release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

// withLock runs work under a lease of five seconds; undefined when the lock stays taken.
async function withLock (key, work) {
  const token = randomUUID()
  for (let tries = 0; tries < 10; tries++) {
    if (await redis.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: 5000 } })) {
      try {
        return await work()
      } finally {
        await redis.eval(release, { keys: [key], arguments: [token] })
      }
    }
    await sleep(20)
  }
}

const db = database === 'postgres' ? openPostgres() : openMysql()
const inTransaction = item => db.transaction(query => sell(query, item, ' FOR UPDATE'))
const buy = {
  naive: item => sell(db.query, item),
  'for-update': inTransaction,
  prepared: inTransaction,
  'redis-lock': item => withLock(`lock:${item}`, () => sell(db.query, item))
}[mode]
if (!buy) throw new Error(`no mode ${mode}`)

let redis
if (mode === 'redis-lock') {
  redis = createClient({ socket: { host, port: Number(process.env.REDIS_PORT ?? 6379) } })
  redis.on('error', err => console.error(err.message)) // it reconnects
  await redis.connect()
}
await db.query('SELECT 1') // connect now, not with the first buyer

http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost')
  const reply = (status, text) => response.writeHead(status).end(`${text}\n`)
  if (url.pathname === '/healthz') return reply(200, 'ok')
  if (request.method !== 'POST' || url.pathname !== '/buy') return reply(404, 'not found')
  try {
    const sold = await buy(Number(url.searchParams.get('item')))
    if (sold === undefined) return reply(503, 'busy')
    return sold ? reply(200, 'bought') : reply(409, 'sold out')
  } catch (err) {
    console.error(err)
    return reply(500, 'error')
  }
}).listen(8080, host)
