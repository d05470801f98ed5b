-- Makes a replica the one that looks lost outcomes up, or keeps it so.
--
-- KEYS[1] reconciler
-- ARGV[1] the replica    ARGV[2] for how many milliseconds
--
-- Returns 1 if it is the one, else 0

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
