-- Raises the token counter, never lowers it.
--
-- KEYS[1] the token counter
-- ARGV[1] the last token that was granted elsewhere, or seen
--
-- Returns the last token as it is now.
local last = tonumber(redis.call('get', KEYS[1]) or '0')
if last >= tonumber(ARGV[1]) then
	return last
end
redis.call('set', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
