// A naive shop whose branches run at once on connections of their own, as a workflow engine does it. Their
// first commands are equal. A branch that finds the log in use tries again after a random pause.
// With "job", the branches run one after the other, and a timer starts a job after the answer.
import { createRequire } from 'node:module'
import http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

const { Pool } = createRequire(process.argv[2] + '/')('pg')
const pool = new Pool({ host: '127.0.0.1', user: 'shop', database: 'shop', max: 4, idleTimeoutMillis: 0 })
const job = process.argv[3] === 'job'
let writing = false

async function log(text) {
  while (writing) {
    await pause(20 + Math.random() * 20)
    await pool.query('SELECT count(*) FROM orders')
  }
  writing = true
  await pool.query('SELECT $1::text', [text])
  writing = false
}

async function branch(statement) {
  if (statement.startsWith('INSERT')) await log(statement)
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query(statement)
  await client.query('COMMIT')
  client.release()
}

async function buy() {
  const { rows } = await pool.query('SELECT stock FROM items WHERE id = 1')
  if (rows[0].stock < 1) return 409
  const statements = ['INSERT INTO payments (amount) VALUES (1)', 'INSERT INTO orders (item_id) VALUES (1)', 'UPDATE items SET stock = 0 WHERE id = 1']
  if (!job) await Promise.all(statements.map(branch))
  else for (const statement of statements.slice(1)) await branch(statement)
  return 200
}

http.createServer((request, response) => {
  const answer = status => response.writeHead(status, { connection: 'close' }).end()
  if (request.method === 'GET') return answer(200)
  buy().then(answer, () => answer(500)).then(() => {
    if (job) setTimeout(branch, 1, 'INSERT INTO payments (amount) VALUES (2)')
  })
}).listen(8080, '127.0.0.1')
