-- Loads the stock from what the database says, less the orders that are on
-- their way to it.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- ARGV[1]  units in the database
-- ARGV[2]  id of the last entry that the database has seen, of the same moment
-- Returns  1 when it was loaded, 0 when it was there already
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
if redis.call('EXISTS', KEYS[2]) == 0 and ARGV[2] ~= '0-0' then
  -- A Redis that has forgotten may have a clock that is behind: the next entry
  -- must come after the last one seen, or it would be taken for an old one.
  redis.call('XADD', KEYS[2], ARGV[2], 'units', '0', 'key', '', 'purchaser', '', 'called', '0')
end
local left = tonumber(ARGV[1])
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+')) do
  left = left - tonumber(entry[2][2]) -- units is the first field
end
redis.call('SET', KEYS[1], left)
return 1
