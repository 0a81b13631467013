-- Extends the lease of a holder that still has it. It may come late: it never
-- takes the lock, and never shortens the lease.
--
-- KEYS[1] the lock, a hash
-- ARGV[1] lease in ms
-- ARGV[2] the holder's field
--
-- Returns 1, or 0 when the holder does not hold it.
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
	return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
	redis.call('pexpire', KEYS[1], ARGV[1])
end
return 1
