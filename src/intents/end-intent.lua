-- Records what became of a call that moves money. It may be told more than once.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- KEYS[4] idempotency key; absent for a call without one
-- ARGV[1] id
-- ARGV[2] 'closed', 'pending' or 'unknown'
-- ARGV[3] payment_id or transaction_id, may be empty
-- ARGV[4] when it is looked at first, in milliseconds from now
-- ARGV[5] how many ids of answered attempts are remembered
-- ARGV[6] what becomes of the key: 'free', 'unknown', 'done' or 'keep'
-- ARGV[7] the answer, for 'done'
--
-- Returns 1 if the intent was known, else 0

local intent, due, subject, key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, state, subject_id = ARGV[1], ARGV[2], ARGV[3]

if key and redis.call('HGET', key, 'id') == id then
  if ARGV[6] == 'free' then
    redis.call('DEL', key)
  elseif ARGV[6] == 'done' then
    redis.call('HSET', key, 'state', 'done', 'answer', ARGV[7])
  elseif ARGV[6] == 'unknown' then
    redis.call('HSET', key, 'state', 'unknown')
  end
end

if state ~= 'unknown' then
  if redis.call('HGET', subject, 'lock') == id then
    redis.call('HDEL', subject, 'lock', 'lock_until')
  end
  if subject_id ~= '' and redis.call('EXISTS', subject) == 1 then
    local answered = cjson.decode(redis.call('HGET', subject, 'answered') or '[]')
    table.insert(answered, subject_id)
    while #answered > tonumber(ARGV[5]) do
      table.remove(answered, 1)
    end
    redis.call('HSET', subject, 'answered', cjson.encode(answered))
  end
end

if redis.call('EXISTS', intent) == 0 then
  return 0
end
if state == 'closed' then
  redis.call('DEL', intent)
  redis.call('ZREM', due, id)
  redis.call('HDEL', subject, 'open:' .. id)
  return 1
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', intent, 'state', state, 'subject', subject_id, 'checks', '0', 'not_found', '0')
redis.call('ZADD', due, string.format('%.0f', now + ARGV[4]), id)
return 1
