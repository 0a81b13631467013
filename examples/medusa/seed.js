// Creates one product with one unit, and for each of two customers a cart that is ready to be completed.
const { ContainerRegistrationKeys, Modules } = require('@medusajs/framework/utils')
const flows = require('@medusajs/medusa/core-flows')

exports.default = async function seed({ container }) {
  const db = container.resolve(ContainerRegistrationKeys.PG_CONNECTION)
  const run = async (flow, input) => (await flow(container).run({ input })).result
  const link = (...links) => container.resolve(ContainerRegistrationKeys.LINK).create(links)

  const [channel] = await run(flows.createSalesChannelsWorkflow, { salesChannelsData: [{ name: 'Web' }] })
  const [region] = await run(flows.createRegionsWorkflow, {
    regions: [{ name: 'Europe', currency_code: 'eur', countries: ['at'], payment_providers: ['pp_system_default'] }],
  })
  await run(flows.createTaxRegionsWorkflow, [{ country_code: 'at', provider_id: 'tp_system' }])
  const [place] = await run(flows.createStockLocationsWorkflow, {
    locations: [{ name: 'Store', address: { city: 'Wien', country_code: 'AT', address_1: 'Ring 1' } }],
  })
  await link({ [Modules.STOCK_LOCATION]: { stock_location_id: place.id }, [Modules.FULFILLMENT]: { fulfillment_provider_id: 'manual_manual' } })
  const [profile] = await run(flows.createShippingProfilesWorkflow, { data: [{ name: 'Post', type: 'default' }] })
  const set = await container.resolve(Modules.FULFILLMENT).createFulfillmentSets({
    name: 'Post', type: 'shipping', service_zones: [{ name: 'Austria', geo_zones: [{ country_code: 'at', type: 'country' }] }],
  })
  await link({ [Modules.STOCK_LOCATION]: { stock_location_id: place.id }, [Modules.FULFILLMENT]: { fulfillment_set_id: set.id } })
  const [shipping] = await run(flows.createShippingOptionsWorkflow, [{
    name: 'Post', price_type: 'flat', provider_id: 'manual_manual', service_zone_id: set.service_zones[0].id, shipping_profile_id: profile.id,
    type: { label: 'Post', description: 'Post', code: 'post' }, prices: [{ currency_code: 'eur', amount: 5 }], rules: [],
  }])
  await run(flows.linkSalesChannelsToStockLocationWorkflow, { id: place.id, add: [channel.id] })
  const [key] = await run(flows.createApiKeysWorkflow, { api_keys: [{ title: 'Web', type: 'publishable', created_by: '' }] })
  await run(flows.linkSalesChannelsToApiKeyWorkflow, { id: key.id, add: [channel.id] })
  await db.raw("UPDATE api_key SET token = 'pk_web' WHERE id = ?", [key.id])

  const [product] = await run(flows.createProductsWorkflow, {
    products: [{
      title: 'Apple', status: 'published', shipping_profile_id: profile.id, sales_channels: [{ id: channel.id }],
      options: [{ title: 'Size', values: ['S'] }],
      variants: [{ title: 'S', sku: 'APPLE', options: { Size: 'S' }, manage_inventory: true, prices: [{ amount: 1, currency_code: 'eur' }] }],
    }],
  })
  const [item] = await container.resolve(Modules.INVENTORY).listInventoryItems({ sku: 'APPLE' })
  await run(flows.createInventoryLevelsWorkflow, { inventory_levels: [{ inventory_item_id: item.id, location_id: place.id, stocked_quantity: 1 }] })

  for (const n of [1, 2]) {
    const address = { first_name: 'Buyer', last_name: String(n), address_1: 'Ring 1', city: 'Wien', postal_code: '1010', country_code: 'at' }
    const cart = await run(flows.createCartWorkflow, {
      id: `cart_${n}`, region_id: region.id, sales_channel_id: channel.id, currency_code: 'eur', email: `buyer${n}@example.com`,
      shipping_address: address, billing_address: address, items: [{ variant_id: product.variants[0].id, quantity: 1 }],
    })
    await run(flows.addShippingMethodToCartWorkflow, { cart_id: cart.id, options: [{ id: shipping.id }] })
    await run(flows.createPaymentCollectionForCartWorkflow, { cart_id: cart.id })
    const { payment_collection_id } = await db('cart_payment_collection').where({ cart_id: cart.id }).first()
    await run(flows.createPaymentSessionsWorkflow, { payment_collection_id, provider_id: 'pp_system_default' })
    console.log('seeded', cart.id)
  }
}
