-- Records the outcome of a call that moves money. It may run more than once, and late.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- KEYS[4] idempotency key; absent for a call without one
-- ARGV[1] id
-- ARGV[2] 'closed', 'pending' or 'unknown'
-- ARGV[3] payment_id or transaction_id of a pending call, may be empty
-- ARGV[4] when it is looked at first, in milliseconds from now
-- ARGV[5] how long the note is kept that the call is over, in milliseconds
-- ARGV[6] '1' if ARGV[7] is a mark to add to those of answered calls    ARGV[7] the mark
-- ARGV[8] most marks to keep
-- ARGV[9] what becomes of the key: 'free', 'unknown', 'done' or 'keep'
-- ARGV[10] the answer, for 'done'
-- ARGV[11] fingerprint of the request, to store a key again that was lost; may be empty
-- ARGV[12] how long a key is kept, in milliseconds
-- ARGV[13] method, whose lock (locks.lua) is released unless the outcome is unknown
-- ARGV[14] '1' once the outcome of a call that was stored as unknown is published
--
-- Returns 0 if the intent was not stored; 2, and changes nothing, if the call's own ending comes after
-- its outcome was stored as unknown and is not published yet; else 1

local intent, due, subject, key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, state, subject_id = ARGV[1], ARGV[2], ARGV[3]
local key_ending, fingerprint = ARGV[9], ARGV[11]

local held = redis.call('HMGET', intent, 'state', 'subject')
local was = held[1]
if was == 'unknown' and state ~= 'unknown' and key_ending ~= 'keep' and ARGV[14] ~= '1' then
  return 2
end

local function end_key()
  local of = redis.call('HGET', key, 'id')
  if not of and fingerprint ~= '' and key_ending ~= 'free' then
    redis.call('HSET', key, 'fingerprint', fingerprint, 'id', id)
    redis.call('PEXPIRE', key, tonumber(ARGV[12]))
  elseif of ~= id then
    return
  end
  if key_ending == 'free' then
    redis.call('DEL', key)
  elseif key_ending == 'done' then
    redis.call('HSET', key, 'state', 'done', 'answer', ARGV[10])
  elseif redis.call('HGET', key, 'state') ~= 'done' then
    redis.call('HSET', key, 'state', 'unknown')
  end
end

if key and key_ending ~= 'keep' then
  end_key()
end
if state ~= 'unknown' then
  unlock(subject, ARGV[13], id)
end

local known = was and 1 or 0
local again = was == 'pending' and state == 'pending' and held[2] == subject_id
local function add_mark(mark)
  local answered = cjson.decode(redis.call('HGET', subject, 'answered') or '[]')
  for _, other in ipairs(answered) do
    if not was and other == mark then
      return
    end
  end
  table.insert(answered, mark)
  while #answered > tonumber(ARGV[8]) do
    table.remove(answered, 1)
  end
  redis.call('HSET', subject, 'answered', cjson.encode(answered))
end

if was and not again and ARGV[6] == '1' then
  add_mark(ARGV[7])
-- Its events ended it before: what it made is no other call's doing even so.
elseif not was and ARGV[7] ~= '' and redis.call('EXISTS', subject) == 1 then
  add_mark(ARGV[7])
end
if state == 'closed' then
  redis.call('DEL', intent)
  -- A delayed begin may still arrive: this note keeps it from beginning the call again.
  redis.call('HSET', intent, 'ended', '1')
  redis.call('PEXPIRE', intent, tonumber(ARGV[5]))
  redis.call('ZREM', due, id)
  redis.call('HDEL', subject, 'open:' .. id)
  return known
end
if not was then
  return known
end
-- An outcome that became known in between stands.
if again or (state == 'unknown' and was ~= 'running') then
  return known
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', intent, 'state', state, 'subject', subject_id, 'checks', '0', 'not_found', '0')
redis.call('ZADD', due, string.format('%.0f', now + ARGV[4]), id)
return known
