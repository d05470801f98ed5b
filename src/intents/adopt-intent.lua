-- Records an intent that began while Redis was out of reach. It may be told more than once.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- ARGV[1] id         ARGV[2] when it is looked at, in milliseconds since the epoch
-- ARGV[3] how long a lock holds at most, in milliseconds from its beginning
-- ARGV[4] how long the intent is kept, in milliseconds
-- ARGV[5] '1' if the call is exclusive    ARGV[6] when it began, in milliseconds since the epoch
-- ARGV[7...] fields of the intent and their values, in turn
--
-- Returns 1 if it was not known yet, else 0

local intent, due, subject = KEYS[1], KEYS[2], KEYS[3]
local id, keep_ms = ARGV[1], tonumber(ARGV[4])
if redis.call('EXISTS', intent) == 1 then
  return 0
end
redis.call('HSET', intent, unpack(ARGV, 7))
redis.call('PEXPIRE', intent, keep_ms)
redis.call('HSET', subject, 'open:' .. id, ARGV[6])
redis.call('PEXPIRE', subject, keep_ms)
redis.call('ZADD', due, ARGV[2], id)
redis.call('PEXPIRE', due, keep_ms)
if ARGV[5] == '1' and redis.call('HEXISTS', subject, 'lock') == 0 then
  redis.call('HSET', subject, 'lock', id, 'lock_until', string.format('%.0f', ARGV[6] + ARGV[3]))
end
return 1
