import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

// Waits for the lock for a while. Returns the value that unlock needs, or undefined without the lock.
export async function lock (redis, key) {
  const token = randomUUID()
  for (let tries = 0; tries < 10; tries++) {
    if (await redis.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: 5000 } })) return token
    await sleep(20)
  }
}

// Releases the lock.
export async function unlock (redis, key, token) {
  const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
  await redis.eval(script, { keys: [key], arguments: [token] })
}
