-- Admits one order: takes its units from the stock and appends it to the stream
-- Role: change
--
-- It does both or neither.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- KEYS[3]  set of the products that have such a stream
-- KEYS[4]  hash of those orders: key of the order to id of the entry
-- ARGV[1]  units
-- ARGV[2]  key of the order
-- ARGV[3]  purchaser
-- ARGV[4]  when the buyer called, in microseconds of Unix time
-- ARGV[5]  product
-- Returns  the id of the entry, also of one that the key has already; "" when
--          there are not enough units; "?" when the stock is not known here
local under_way = redis.call('HGET', KEYS[4], ARGV[2])
-- A Redis that has lost its data may assign an id twice. Settling one of the two
-- entries then removes the other, so check that the entry still exists.
if under_way and #redis.call('XRANGE', KEYS[2], under_way, under_way) == 1 then
  return under_way
end
local stock = redis.call('GET', KEYS[1])
if not stock then
  return '?'
end
if tonumber(stock) < tonumber(ARGV[1]) then
  return ''
end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[5])
local entry = redis.call('XADD', KEYS[2], '*', 'units', ARGV[1], 'key', ARGV[2], 'purchaser', ARGV[3], 'called', ARGV[4])
redis.call('HSET', KEYS[4], ARGV[2], entry)
return entry
