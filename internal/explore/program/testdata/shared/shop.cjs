// A shop whose buyers share one process: mysql2's pool, and a mutex that is a queue of promises.
//
//   node shop.cjs MODE POOL
const { randomUUID } = require('node:crypto')
const http = require('node:http')
const mysql = require('mysql2/promise')

const [mode, size] = process.argv.slice(2)
const host = '127.0.0.1'
const pool = mysql.createPool({ host, port: 3306, user: 'root', database: 'shop', connectionLimit: Number(size) })

let last = Promise.resolve()

// alone runs work when all that came before has ended.
function alone (work) {
  const mine = last.then(() => work())
  last = mine.catch(() => {})
  return mine
}

const price = () => pool.query('SELECT price FROM prices WHERE item_id = 1')

// sell reports whether a unit was left.
async function sell (db = pool) {
  const [[{ stock }]] = await db.query('SELECT stock FROM items WHERE id = 1')
  if (stock < 1) return false
  await db.query('UPDATE items SET stock = ? WHERE id = 1', [stock - 1])
  await db.query('INSERT INTO orders (item_id, buyer) VALUES (1, ?)', [randomUUID()])
  return true
}

// locked sells under a lock that belongs to a connection. It pauses under the lock, as a call of another service would.
async function locked (db) {
  await db.query("SELECT GET_LOCK('item', 10)")
  await new Promise(resolve => setTimeout(resolve, 50))
  try {
    return await sell(db)
  } finally {
    await db.query("SELECT RELEASE_LOCK('item')")
  }
}

const buy = {
  pooled: () => locked(pool), // during the pause the pool may lend the lock's connection to others
  held: async () => {
    const connection = await pool.getConnection()
    try {
      return await locked(connection)
    } finally {
      connection.release()
    }
  },
  naive: async () => { await price(); return sell() },
  guarded: async () => { await price(); return alone(sell) },
  whole: () => alone(sell)
}[mode]

http.createServer(async (request, response) => {
  const reply = (status, text) => response.writeHead(status).end(`${text}\n`)
  if (request.method !== 'POST') return reply(200, 'ok')
  try {
    return await buy() ? reply(200, 'bought') : reply(409, 'sold out')
  } catch (err) {
    console.error(err)
    return reply(500, 'error')
  }
}).listen(8080, host)
