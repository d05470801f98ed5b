-- Stores a dead letter, once per id.
--
-- KEYS[1] letters   KEYS[2] their order   KEYS[3] the total length of their bodies
-- ARGV[1] id   ARGV[2] the letter, as JSON   ARGV[3] length of its body
-- ARGV[4] most letters   ARGV[5] greatest total length of the bodies
-- ARGV[6] '1' to write a known letter again, so that a WAIT after it covers all earlier writes
--
-- Returns 'kept', also for a known letter, or 'full'

local letters, order, size = KEYS[1], KEYS[2], KEYS[3]
local id, letter, length = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('HEXISTS', letters, id) == 1 then
  if ARGV[6] == '1' then
    redis.call('HSET', letters, id, redis.call('HGET', letters, id))
  end
  return 'kept'
end
local stored = tonumber(redis.call('GET', size) or 0)
if redis.call('HLEN', letters) >= tonumber(ARGV[4]) or stored + length > tonumber(ARGV[5]) then
  return 'full'
end
-- The time in microseconds, but after the last place. So no place is used twice, even if the newest
-- letter was removed.
local last = redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')
local time = redis.call('TIME')
local place = math.max((tonumber(last[2]) or 0) + 1, time[1] * 1000000 + time[2])
redis.call('HSET', letters, id, letter)
redis.call('ZADD', order, string.format('%.0f', place), id)
redis.call('INCRBY', size, length)
return 'kept'
