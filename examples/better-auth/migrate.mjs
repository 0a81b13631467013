// Creates the tables, a user, and a key of this user for one request. Table issued keeps the key for reset.
import { adapter, auth, getMigrations, pool } from './auth.mjs'

const { runMigrations } = await getMigrations(auth.options)
await runMigrations()
const now = new Date()
const { id } = await adapter.create({ model: 'user', data: { name: 'Ann', email: 'ann@example.com', emailVerified: true, createdAt: now, updatedAt: now } })
await auth.api.createApiKey({ body: { userId: id, remaining: 1 } })
await pool.query('CREATE TABLE issued AS TABLE apikey')
await pool.end()
