// Creates the tables, one product with one unit, and an empty order for each of two customers.
process.env.SEED = '1'
const path = require('node:path')
const { bootstrap, CustomerService, RequestContextService, TransactionalConnection } = require('@vendure/core')
const { populate } = require('@vendure/core/cli')
const { config } = require('./config')

const initialData = {
  defaultLanguage: 'en',
  defaultZone: 'Europe',
  countries: [{ name: 'Austria', code: 'AT', zone: 'Europe' }],
  taxRates: [{ name: 'Standard Tax', percentage: 20 }],
  shippingMethods: [{ name: 'Post', price: 500 }],
  paymentMethods: [{ name: 'Dummy', handler: { code: 'dummy-payment-handler', arguments: [{ name: 'automaticSettle', value: 'true' }] } }],
  collections: [],
}

async function ask(token, query) {
  const answer = await fetch('http://127.0.0.1:3000/shop-api', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: 'Bearer ' + token } : {}) },
    body: JSON.stringify({ query }),
  })
  const body = await answer.json()
  if (body.errors) throw new Error(JSON.stringify(body.errors))
  return { token: answer.headers.get('vendure-auth-token'), data: body.data }
}

async function main() {
  const app = await populate(() => bootstrap(config), initialData, path.join(__dirname, 'products.csv'))
  const ctx = await app.get(RequestContextService).create({ apiType: 'admin' })
  const db = app.get(TransactionalConnection).rawConnection
  for (const n of [1, 2]) {
    const email = `buyer${n}@example.com`
    const made = await app.get(CustomerService).create(ctx, { firstName: 'Buyer', lastName: String(n), emailAddress: email }, 'secret')
    if (made.errorCode) throw new Error(made.errorCode)
    const { token } = await ask(null, `mutation { login(username: "${email}", password: "secret") { __typename } }`)
    const variants = await db.query('SELECT id FROM product_variant')
    const added = await ask(token, `mutation { addItemToOrder(productVariantId: "${variants[0].id}", quantity: 1) { __typename ... on Order { id lines { id } } } }`)
    await ask(token, `mutation { setOrderShippingAddress(input: { streetLine1: "Ring 1", city: "Wien", postalCode: "1010", countryCode: "AT" }) { __typename } }`)
    await ask(token, `mutation { removeAllOrderLines { __typename } }`)
    await db.query('UPDATE session SET token = $1, expires = $2 WHERE token = $3', [`buyer-${n}`, '2099-01-01', token])
    console.log(email, JSON.stringify(added.data))
  }
  await app.close()
}

main().then(() => process.exit(0), err => { console.error(err); process.exit(1) })
