-- Takes or renews a lease, such as that of the replica that reconciles.
--
-- KEYS[1] lease
-- ARGV[1] id of the holder    ARGV[2] lease in milliseconds
--
-- Returns 1 if the holder has it now, 0 if another one does

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
