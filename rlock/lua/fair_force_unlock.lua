-- Frees the fair lock of any holder, and notifies the next waiter in the queue.
--
-- KEYS    as in fair.lua
--
-- Returns 1, or 0 when the lock was free.
local freed = redis.call('del', KEYS[1])
if freed == 1 then
	call_next(now())
end
return freed
