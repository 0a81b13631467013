-- Gives the lock from one holder to another of the same process. No waiter is
-- notified, since the lock stays locked.
--
-- KEYS[1] the lock, a hash
-- KEYS[2] the token counter; only when the successor wants a fenced lock
-- ARGV[1] the field of the holder
-- ARGV[2] the field of the successor
-- ARGV[3] the successor's lease in ms
--
-- Returns {1, token}, or {0, 0} when the holder does not hold it.
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
	return {0, 0}
end
redis.call('hset', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[3])
return {1, KEYS[2] and redis.call('incr', KEYS[2]) or 0}
