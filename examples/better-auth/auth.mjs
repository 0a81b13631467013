// Better Auth 1.3 or 1.7 with its plugin for API keys, both as their documentation sets them up.
import pg from 'pg'

export const [version, mode] = process.argv.slice(2)
const [core, plugin, database] = {
  1.3: ['better-auth-1.3', 'better-auth-1.3/plugins', 'better-auth-1.3/db'],
  1.7: ['better-auth', '@better-auth/api-key', 'better-auth/db/migration'],
}[version]
const { betterAuth } = await import(core)
const { apiKey } = await import(plugin)
export const { getMigrations } = await import(database)

export const pool = new pg.Pool({ host: '127.0.0.1', port: process.env.POSTGRES_PORT ?? 5432, user: 'shop', database: 'shop', max: 4, idleTimeoutMillis: 0 })
// A connection that breaks leaves the pool by itself; without a listener the event would end the process.
pool.on('error', () => {})
pool.on('connect', client => client.on('error', () => {}))

export const auth = betterAuth({
  database: pool,
  secret: 'the secret of an example, 32 letters',
  baseURL: 'http://127.0.0.1:8080',
  telemetry: { enabled: false },
  plugins: [apiKey({ defaultKeyLength: 12, customKeyGenerator: () => 'the-only-key' })],
})
export const { adapter } = await auth.$context
