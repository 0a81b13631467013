// The configuration of the shop. It has the plugins of a new Vendure project that the server needs.
const { DefaultJobQueuePlugin, DefaultLogger, DefaultSearchPlugin, LogLevel, dummyPaymentHandler } = require('@vendure/core')

const never = 24 * 3600 * 1000 // ms; a cache that expires sends statements by the clock

exports.config = {
  apiOptions: { port: 3000, hostname: '127.0.0.1', adminApiPath: 'admin-api', shopApiPath: 'shop-api' },
  authOptions: { tokenMethod: 'bearer', requireVerification: false, sessionCacheTTL: '1d', superadminCredentials: { identifier: 'admin', password: 'admin' } },
  entityOptions: { channelCacheTtl: never, zoneCacheTtl: never, taxRateCacheTtl: never },
  dbConnectionOptions: {
    type: 'postgres', host: '127.0.0.1', port: 5432, username: 'shop', database: 'shop', ssl: false,
    synchronize: process.env.SEED === '1', logging: false,
  },
  paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
  logger: new DefaultLogger({ level: LogLevel.Warn }),
  plugins: [DefaultJobQueuePlugin.init({ useDatabaseForBuffer: true }), DefaultSearchPlugin.init({ bufferUpdates: false, indexStockStatus: true })],
}
