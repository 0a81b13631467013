// A shop that asks another pool for a constant in the middle of a transaction: mysql2's pool, or that of pg.
//
//   node scattered.cjs mysql|postgres MODE
//
//   pooled  sends each statement of the transaction to the pool
//   held    keeps one connection of the pool from BEGIN to COMMIT
const http = require('node:http')

const [database, mode] = process.argv.slice(2)
const host = '127.0.0.1'

// open returns a pool: query returns the first row, and get lends a connection that has query and release, too.
const open = {
  mysql: max => {
    const pool = require('mysql2/promise').createPool({ host, port: 3306, user: 'root', database: 'shop', connectionLimit: max })
    const first = async ([rows]) => rows[0]
    const of = db => ({ query: text => db.query(text).then(first), release: () => db.release() })
    return { ...of(pool), get: async () => of(await pool.getConnection()) }
  },
  postgres: max => {
    const pool = new (require('pg').Pool)({ host, port: 5432, user: 'shop', database: 'shop', max, idleTimeoutMillis: 0 })
    const of = db => ({ query: text => db.query(text).then(({ rows }) => rows[0]), release: () => db.release() })
    return { ...of(pool), get: async () => of(await pool.connect()) }
  }
}[database]

const pool = open(3)
const prices = open(2)

async function sell (db) {
  await db.query('BEGIN')
  const { stock } = await db.query('SELECT stock FROM items WHERE id = 1 FOR UPDATE')
  await prices.query('SELECT 10 AS price')
  if (stock > 0) {
    await db.query(`UPDATE items SET stock = ${stock - 1} WHERE id = 1`)
    await db.query("INSERT INTO orders (item_id, buyer) VALUES (1, 'someone')")
  }
  await db.query('COMMIT')
  return stock > 0
}

async function buy () {
  if (mode === 'pooled') return sell(pool)
  const connection = await pool.get()
  try {
    return await sell(connection)
  } finally {
    connection.release()
  }
}

http.createServer(async (request, response) => {
  if (request.method !== 'POST') return response.end('ok')
  try {
    response.writeHead(await buy() ? 200 : 409).end()
  } catch (err) {
    console.error(err)
    response.writeHead(500).end()
  }
}).listen(8080, host)
