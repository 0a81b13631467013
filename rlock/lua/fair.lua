-- The common part of the scripts of the fair lock; it is prepended to each.
--
-- KEYS[1] the lock, a hash
-- KEYS[2] the queue, a list of fields, the next one first
-- KEYS[3] the timeouts: field -> ms since 1970 after which the waiter is dead
-- KEYS[4] the lock's channel; a waiter listens on it with ":field" appended

local function now()
	local time = redis.call('time')
	return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- skip_dead removes dead waiters from the front of the queue, and returns the
-- first live one, or false.
local function skip_dead(at)
	while true do
		local first = redis.call('lindex', KEYS[2], 0)
		if not first then
			return false
		end
		local timeout = redis.call('zscore', KEYS[3], first)
		if timeout and tonumber(timeout) > at then
			return first
		end
		redis.call('lpop', KEYS[2])
		redis.call('zrem', KEYS[3], first)
	end
end

-- call_next notifies the next waiter in the queue, and returns its field, or ''.
local function call_next(at)
	local first = skip_dead(at)
	if first then
		redis.call('publish', KEYS[4] .. ':' .. first, '0')
	end
	return first or ''
end
