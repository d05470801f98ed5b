-- Removes the members of indexes whose record has expired.
--
-- KEYS the indexes, then the records
-- ARGV[1] how many indexes there are   ARGV[2...] the members that are the records

local indexes = tonumber(ARGV[1])
for i = 2, #ARGV do
  if redis.call('EXISTS', KEYS[indexes + i - 1]) == 0 then
    for n = 1, indexes do redis.call('ZREM', KEYS[n], ARGV[i]) end
  end
end
