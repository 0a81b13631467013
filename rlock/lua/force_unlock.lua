-- Frees the lock of any holder, and notifies the waiters.
--
-- KEYS[1] the lock, a hash
-- KEYS[2] the lock's channel
--
-- Returns 1, or 0 when the lock was free.
local freed = redis.call('del', KEYS[1])
if freed == 1 then
	redis.call('publish', KEYS[2], '0')
end
return freed
