-- Frees the fair lock, whoever holds it, and tells the next in the queue.
--
-- KEYS    as in fair.lua
--
-- Returns 1, or 0 when nobody held it.
local freed = redis.call('del', KEYS[1])
if freed == 1 then
	call_next(now())
end
return freed
