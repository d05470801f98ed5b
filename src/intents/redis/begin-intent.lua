-- Takes an Idempotency-Key and the lock of a method on an external_id (locks.lua), and records the
-- intent of a call that moves money: all of it or nothing. It may run more than once, and late.
--
-- KEYS[1] intent     KEYS[2] intents due     KEYS[3] intents of the external_id
-- KEYS[4] idempotency key; absent for a call without one
-- KEYS[5...] the same key with the other methods, each of which has a record of its own
-- ARGV[1] id         ARGV[2] method          ARGV[3] kind    ARGV[4] external_id
-- ARGV[5] lease in milliseconds: after it the call has ended, or its replica is gone
-- ARGV[6] longest time that a lock is valid, in milliseconds
-- ARGV[7] how long the intent is kept, in milliseconds
-- ARGV[8] digest of the key, may be empty
-- ARGV[9] how long a key is kept, in milliseconds
-- ARGV[10...] fingerprints of the request, the current password's first
--
-- Returns { 'started', now, marks of answered calls as JSON }, { 'inFlight', now },
-- { 'keyReused' }, { 'keyRunning' }, { 'keyUnknown' }, { 'keyAnswered', answer }, or { 'ended' }
-- for a call that is over already; now in milliseconds

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local intent, due, subject, key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, method = ARGV[1], ARGV[2]
local lease_ms, lock_ms, keep_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local function text(number)
  return string.format('%.0f', number)
end

if redis.call('EXISTS', intent) == 1 then
  local begun = redis.call('HMGET', intent, 'id', 'started', 'answered')
  if not begun[1] then
    return { 'ended' }
  end
  return { 'started', begun[2], begun[3] }
end

for at = 5, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 1 then
    return { 'keyReused' }
  end
end

if key then
  local used = redis.call('HMGET', key, 'fingerprint', 'state', 'until', 'answer')
  if used[1] then
    local same = false
    for at = 10, #ARGV do
      same = same or ARGV[at] == used[1]
    end
    if not same then
      return { 'keyReused' }
    end
    if used[2] == 'done' then
      return { 'keyAnswered', used[4] }
    end
    -- A replica that did not end its call within the lease is gone, so the outcome is unknown.
    if used[2] == 'running' and tonumber(used[3]) > now then
      return { 'keyRunning' }
    end
    return { 'keyUnknown' }
  end
end

if is_locked(subject, method, now) then
  return { 'inFlight', text(now) }
end
lock(subject, method, id, now + lock_ms, now)
local answered = redis.call('HGET', subject, 'answered') or '[]'

redis.call('HSET', intent, 'id', id, 'method', method, 'kind', ARGV[3], 'external_id', ARGV[4],
  'state', 'running', 'started', text(now), 'until', text(now + lease_ms), 'answered', answered,
  'key', ARGV[8])
redis.call('PEXPIRE', intent, keep_ms)
redis.call('HSET', subject, 'open:' .. id, text(now))
redis.call('PEXPIRE', subject, keep_ms)
redis.call('ZADD', due, text(now + lease_ms), id)
redis.call('ZREMRANGEBYSCORE', due, '-inf', text(now - keep_ms))
redis.call('PEXPIRE', due, keep_ms)
if key then
  redis.call('HSET', key, 'fingerprint', ARGV[10], 'state', 'running', 'id', id, 'until', text(now + lease_ms))
  redis.call('PEXPIRE', key, tonumber(ARGV[9]))
end
return { 'started', text(now), answered }
