-- Removes a dead letter.
--
-- KEYS[1] letters   KEYS[2] their order   KEYS[3] the total length of their bodies
-- ARGV[1] id
--
-- Returns 1, or 0 if it did not exist

local letters, order, size = KEYS[1], KEYS[2], KEYS[3]
local letter = redis.call('HGET', letters, ARGV[1])
if letter then
  redis.call('HDEL', letters, ARGV[1])
  redis.call('ZREM', order, ARGV[1])
  redis.call('DECRBY', size, #cjson.decode(letter).body)
end
return letter and 1 or 0
