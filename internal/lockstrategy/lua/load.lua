-- Loads the stock from what the database says
-- Role: change
--
-- The orders that are on their way to the database are subtracted.
-- The database may have moved on since it was read. What is loaded then is too
-- high, never too low: an order that was sold meanwhile is in the stream, and
-- subtracted, or has left it. Too high ends with the first order that the
-- database refuses, see settle.lua.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- ARGV[1]  units in the database
-- ARGV[2]  id of the last entry that the database has seen, of the same moment
-- ARGV[3]  "raise" to correct also a stock that is there and lower
-- Returns  1 when it was loaded, 0 when the stock that was there stands
local left = tonumber(ARGV[1])
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+')) do
  left = left - tonumber(entry[2][2]) -- units is the first field
end
local stock = redis.call('GET', KEYS[1])
if stock and (ARGV[3] ~= 'raise' or tonumber(stock) >= left) then
  return 0
end
-- A Redis that has forgotten may have a clock that is behind: the next entry must
-- come after the last one seen, or it would be taken for an old one. An error
-- says that it will.
redis.pcall('XADD', KEYS[2], ARGV[2], 'units', '0', 'key', '', 'purchaser', '', 'called', '0')
redis.call('SET', KEYS[1], left)
return 1
