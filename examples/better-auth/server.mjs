// A service that asks Better Auth whether the API key of a request is valid.
//
//   node server.mjs 1.3 | 1.7 [mended]
import http from 'node:http'
import { adapter, auth, mode, version } from './auth.mjs'

if (mode === 'mended' && version === '1.3') {
  // The plugin writes the `remaining` that it has computed. Let the write find the one that it has read.
  const update = adapter.update
  adapter.update = query => {
    const { remaining } = query.update
    const asRead = Number.isInteger(remaining) ? [{ field: 'remaining', value: remaining + 1 }] : []
    return update({ ...query, where: [...query.where, ...asRead] })
  }
}
if (mode === 'mended' && version === '1.7') {
  adapter.delete = async () => {} // a key that is used up stays, since the request that used it still writes to it
}

http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1')
  if (url.pathname === '/healthz') return response.end('ok\n')
  const { valid, error } = await auth.api.verifyApiKey({ body: { key: url.searchParams.get('key') } })
  response.writeHead(valid ? 200 : 401, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ valid, error: error?.code }))
}).listen(8080, '127.0.0.1')
