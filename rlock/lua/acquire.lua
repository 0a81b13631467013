-- Takes the lock, or takes it once more.
--
-- KEYS[1] the lock, a hash
-- KEYS[2] the token counter; only for a fenced lock
-- ARGV[1] lease in ms
-- ARGV[2] the holder's field
-- ARGV[3] holds that this holder will have: a number, not "one more", so that
--         a repeated command changes nothing
--
-- Returns {holds, token} when granted,
--         {0, ms until the lock expires} when another holder has it.
local free = redis.call('exists', KEYS[1]) == 0
if not free and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
	return {0, redis.call('pttl', KEYS[1])}
end

local holds = free and 1 or tonumber(ARGV[3])
redis.call('hset', KEYS[1], ARGV[2], holds)
-- A lock inside a lock must not shorten the outer one.
if free or redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
	redis.call('pexpire', KEYS[1], ARGV[1])
end
return {holds, KEYS[2] and redis.call('incr', KEYS[2]) or 0}
