-- Removes entries that the database has decided on, and gives back the units of
-- those that it refused. Whoever removes an entry gives its units back: of two
-- that settle the same entry one does.
--
-- KEYS[1]  stock, units as a number
-- KEYS[2]  stream of the orders that are not in the database yet
-- KEYS[3]  hash of those orders: key of the order to id of the entry
-- ARGV     for each entry its id, the key of the order, and the units to give back
-- Returns  how many entries were removed
local removed = 0
for i = 1, #ARGV, 3 do
  if redis.call('XDEL', KEYS[2], ARGV[i]) == 1 then
    removed = removed + 1
    redis.call('HDEL', KEYS[3], ARGV[i + 1])
    if ARGV[i + 2] ~= '0' and redis.call('EXISTS', KEYS[1]) == 1 then
      redis.call('INCRBY', KEYS[1], ARGV[i + 2])
    end
  end
end
return removed
