-- Looks at an intent no more, and gives its lock back.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- ARGV[1] id

if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'needs_operator', '1')
end
redis.call('ZREM', KEYS[2], ARGV[1])
if redis.call('HGET', KEYS[3], 'lock') == ARGV[1] then
  redis.call('HDEL', KEYS[3], 'lock', 'lock_until')
end
