-- Takes or renews a replica's lease as the one that reconciles.
--
-- KEYS[1] reconciler
-- ARGV[1] id of the replica    ARGV[2] lease in milliseconds
--
-- Returns 1 if the replica has the lease, 0 if another one does

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
