-- Removes a waiter that gave up from the queue. If the lock is free, the message
-- may have gone to this waiter, so the next one is notified.
--
-- KEYS    as in fair.lua
-- ARGV[1] the waiter's field
-- ARGV[2] ms past its turn after which a silent waiter is dead
--
-- Returns 1, or 0 when it was not in the queue.
local behind = false
for _, field in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
	if field == ARGV[1] then
		behind = true
	elseif behind then
		redis.call('zincrby', KEYS[3], -tonumber(ARGV[2]), field)
	end
end
redis.call('zrem', KEYS[3], ARGV[1])
local left = redis.call('lrem', KEYS[2], 0, ARGV[1])
if redis.call('exists', KEYS[1]) == 0 then
	call_next(now())
end
return left
