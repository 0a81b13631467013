const fs = require('node:fs')
const path = require('node:path')
const store = path.join(process.env.STANDIN, 'cache')
fs.mkdirSync(store, { recursive: true })
const name = key => encodeURIComponent(key)
const entries = fs.readdirSync(store).map(entry => ({ entry, at: fs.statSync(path.join(store, entry)).mtimeMs }))
const { INPUT_PATH: folder, INPUT_KEY: key } = process.env
const prefixes = (process.env['INPUT_RESTORE-KEYS'] ?? '').split('\n').filter(Boolean)
const newest = prefix => entries.filter(({ entry }) => entry.startsWith(name(prefix))).sort((a, b) => b.at - a.at)[0]?.entry
const hit = entries.some(({ entry }) => entry === name(key))
const found = hit ? name(key) : prefixes.map(newest).find(Boolean)
if (found) fs.cpSync(path.join(store, found), folder, { recursive: true })
console.log(found ? `Cache restored from key: ${decodeURIComponent(found)}` : 'Cache not found')
fs.appendFileSync(process.env.GITHUB_OUTPUT, `cache-hit=${hit}\n`)
