-- Removes entries that the database has decided on
-- Role: change
--
-- If the database has refused an order, the stock here differs from the database. The
-- script deletes it, and the next buyer loads it again, with the units of the refused
-- order. So no unit is given back twice, and none is kept.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- KEYS[3]  set of the products that have such a stream
-- KEYS[4]  hash of those orders: key of the order to id of the entry
-- ARGV[1]  product
-- ARGV     from the second on, for each entry: its id, the key of the order, and
--          the units that were not sold
-- Returns  how many entries are left
for i = 2, #ARGV, 3 do
  if redis.call('XDEL', KEYS[2], ARGV[i]) == 1 then
    redis.call('HDEL', KEYS[4], ARGV[i + 1])
    if ARGV[i + 2] ~= '0' then
      redis.call('DEL', KEYS[1])
    end
  end
end
local left = redis.call('XLEN', KEYS[2])
if left == 0 then
  redis.call('SREM', KEYS[3], ARGV[1])
end
return left
