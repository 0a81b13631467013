const { bootstrap } = require('@vendure/core')
const { config } = require('./config')

bootstrap(config).catch(err => { console.error(err); process.exit(1) })
