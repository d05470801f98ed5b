-- Stops looking an intent up, releases its lock (locks.lua), and keeps it for an operator.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- KEYS[4] intents given up
-- ARGV[1] id         ARGV[2] how long intents are kept, in milliseconds    ARGV[3] method

local intent, due, subject, given_up = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, keep_ms = ARGV[1], tonumber(ARGV[2])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HEXISTS', intent, 'id') == 1 then
  redis.call('HSET', intent, 'needs_operator', '1')
  redis.call('ZADD', given_up, string.format('%.0f', now), id)
  redis.call('ZREMRANGEBYSCORE', given_up, '-inf', string.format('%.0f', now - keep_ms))
  redis.call('PEXPIRE', given_up, keep_ms)
end
redis.call('ZREM', due, id)
unlock(subject, ARGV[3], id)
