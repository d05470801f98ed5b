-- Sets when an intent is due next.
--
-- KEYS[1] intent     KEYS[2] intents due
-- ARGV[1] id         ARGV[2] in how many milliseconds
-- ARGV[3] how often it was looked up    ARGV[4] how often in a row it was not found

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HEXISTS', KEYS[1], 'id') == 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return
end
redis.call('HSET', KEYS[1], 'checks', ARGV[3], 'not_found', ARGV[4])
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
