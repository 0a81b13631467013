-- Gives back one hold. The last one frees the lock and notifies the waiters.
--
-- KEYS[1] the lock, a hash
-- KEYS[2] the lock's channel
-- ARGV[1] the holder's field
-- ARGV[2] holds that are left
--
-- Returns {holds that are left, notified listeners}; {-1, 0} when the holder does
-- not hold it.
local left = tonumber(ARGV[2])
if left > 0 then
	if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
		return {-1, 0}
	end
	redis.call('hset', KEYS[1], ARGV[1], left)
	return {left, 0}
end
-- The field is the only one, and a hash without fields is gone.
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
	return {-1, 0}
end
return {0, redis.call('publish', KEYS[2], '0')}
