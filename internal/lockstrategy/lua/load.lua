-- Loads the stock from what the database says
-- Role: change
--
-- It subtracts the orders that are on their way to the database. The stock of the
-- database may be older than the stream. The loaded stock is then too high, never
-- too low: an order that was sold since is still in the stream, and is subtracted,
-- or has left it. The first order that the database refuses corrects a stock that
-- is too high, see settle.lua.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- ARGV[1]  units in the database
-- ARGV[2]  id of the last entry that the database had seen at that moment
-- ARGV[3]  "raise" to replace an existing stock that is lower, too
-- Returns  1 when it was loaded, 0 when the existing stock was kept
local left = tonumber(ARGV[1])
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+')) do
  left = left - tonumber(entry[2][2]) -- units is the first field
end
local stock = redis.call('GET', KEYS[1])
if stock and (ARGV[3] ~= 'raise' or tonumber(stock) >= left) then
  return 0
end
-- The clock of a Redis that has lost its data may be behind. The next entry must
-- come after the last one seen, or it would count as an old one. An error means
-- that it will.
redis.pcall('XADD', KEYS[2], ARGV[2], 'units', '0', 'key', '', 'purchaser', '', 'called', '0')
redis.call('SET', KEYS[1], left)
return 1
