-- Records an intent that began without Redis, that Redis has lost, or that no call of ours made.
-- It may run more than once, and late.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- ARGV[1] id         ARGV[2] how long ago it began, in milliseconds
-- ARGV[3] when its lease is over, in milliseconds from now
-- ARGV[4] when it is looked at first, in milliseconds from now
-- ARGV[5] longest time that a lock is valid, in milliseconds from the start of the call
-- ARGV[6] how long the intent is kept, in milliseconds
-- ARGV[7] method, whose lock (locks.lua) it takes; empty for a call that has its answer
-- ARGV[8] most intents that may be due, or 0 for no limit
-- ARGV[9...] names and values of the intent's fields, in turn
--
-- Returns 1, or 0 if there are too many

local intent, due, subject = KEYS[1], KEYS[2], KEYS[3]
local id, keep_ms, most = ARGV[1], tonumber(ARGV[6]), tonumber(ARGV[8])
-- The intent is stored already, or its call is over.
if redis.call('EXISTS', intent) == 1 then
  return 1
end
if most > 0 and redis.call('ZCARD', due) >= most then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number)
  return string.format('%.0f', number)
end

local started = now - ARGV[2]
redis.call('HSET', intent, 'started', text(started), 'until', text(now + ARGV[3]), unpack(ARGV, 9))
redis.call('PEXPIRE', intent, keep_ms)
redis.call('HSET', subject, 'open:' .. id, text(started))
redis.call('PEXPIRE', subject, keep_ms)
redis.call('ZADD', due, text(now + ARGV[4]), id)
redis.call('PEXPIRE', due, keep_ms)
if ARGV[7] ~= '' then
  lock(subject, ARGV[7], id, started + ARGV[5], now)
end
return 1
