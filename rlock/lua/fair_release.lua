-- Gives back one hold of the fair lock. The last one frees the lock and notifies
-- the next waiter in the queue.
--
-- KEYS    as in fair.lua
-- ARGV[1] the holder's field
-- ARGV[2] holds that are left
--
-- Returns {holds that are left, field of the notified waiter or ''};
-- {-1, ''} when the holder does not hold it.
local left = tonumber(ARGV[2])
if left > 0 then
	if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
		return {-1, ''}
	end
	redis.call('hset', KEYS[1], ARGV[1], left)
	return {left, ''}
end
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
	return {-1, ''}
end
return {0, call_next(now())}
