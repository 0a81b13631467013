// The configuration of the shop: a new Medusa project without the admin pages. Medusa's default lock is in
// the memory of a process, so it keeps no two processes apart. LOCKING=postgres selects Medusa's other lock.
const { defineConfig } = require('@medusajs/framework/utils')

const provider = { resolve: '@medusajs/medusa/locking-postgres', id: 'locking-postgres', is_default: true }

module.exports = defineConfig({
  admin: { disable: true },
  modules: process.env.LOCKING === 'postgres' ? [{ resolve: '@medusajs/medusa/locking', options: { providers: [provider] } }] : [],
  projectConfig: {
    databaseUrl: 'postgres://shop@127.0.0.1:5432/shop',
    databaseDriverOptions: { connection: { ssl: false } },
    http: { storeCors: '*', adminCors: '*', authCors: '*', jwtSecret: 'secret', cookieSecret: 'secret' },
  },
})
