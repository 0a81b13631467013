-- Takes the fair lock, or takes it once more, or queues for it.
--
-- KEYS    as in fair.lua
-- ARGV[1] lease in ms
-- ARGV[2] the holder's field
-- ARGV[3] holds that this holder will have
-- ARGV[4] ms past its turn after which a silent waiter is dead
-- ARGV[5] 1: queue when another holder has the lock; 0: do not
--
-- Returns {holds, 0} when granted, {0, ms until the next attempt} when not.
local at = now()
local before = redis.call('lindex', KEYS[2], 0)
local first = skip_dead(at)
local free = redis.call('exists', KEYS[1]) == 0

if free and (not first or first == ARGV[2]) then
	redis.call('lpop', KEYS[2])
	redis.call('zrem', KEYS[3], ARGV[2])
	-- All waiters move up by one.
	for _, field in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
		redis.call('zincrby', KEYS[3], -tonumber(ARGV[4]), field)
	end
	redis.call('hset', KEYS[1], ARGV[2], 1)
	redis.call('pexpire', KEYS[1], ARGV[1])
	return {1, 0}
end

if not free and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
	redis.call('hset', KEYS[1], ARGV[2], ARGV[3])
	if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
		redis.call('pexpire', KEYS[1], ARGV[1])
	end
	return {tonumber(ARGV[3]), 0}
end

-- The message went to a waiter that was skipped; notify its successor.
if free and before ~= first then
	call_next(at)
end

local ms
if free then
	ms = tonumber(redis.call('zscore', KEYS[3], first)) - at
else
	ms = redis.call('pttl', KEYS[1])
end
if ARGV[5] == '1' and not redis.call('zscore', KEYS[3], ARGV[2]) then
	local last = redis.call('lindex', KEYS[2], -1)
	local ahead = last and redis.call('zscore', KEYS[3], last)
	ahead = ahead and tonumber(ahead) or at + math.max(ms, 0)
	redis.call('zadd', KEYS[3], ahead + tonumber(ARGV[4]), ARGV[2])
	redis.call('rpush', KEYS[2], ARGV[2])
end
return {0, ms}
