-- delete if mine
--
-- Role: release
-- Lock: KEYS[1]
-- Refused: 0
--
-- ARGV[1]  token of the holder
-- Returns  1; 0 when another holder has the key, or none
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
