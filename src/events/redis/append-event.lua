-- Stores an event unless it is a duplicate, in one atomic step: merges it into the state of its
-- operation (merge.ts), appends it to the account's events and to those of its payment or payout,
-- and wakes the readers if it may be shown already.
--
-- KEYS[1] log        KEYS[2] events         KEYS[3] topic
-- KEYS[4] state      KEYS[5] seen identity  KEYS[6] unfinished
-- KEYS[7] seen body; absent for an event without a digest
-- ARGV[1] the event's bytes, without a cursor
-- ARGV[2] 'c' for a callback, else 'o'
-- ARGV[3] key of its operation: JSON list of subject and operation
-- ARGV[4] operation_id, may be empty
-- ARGV[5] rank: 0 init, 1 pending, 2 success or failure, -1 a status that is not known
-- ARGV[6] status, may be empty
-- ARGV[7] retention in milliseconds
-- ARGV[8] epoch for the log, if it does not exist yet
-- ARGV[9] seq of the event, if it is the first of its millisecond: random, so that it hardly ever
--         gets the id of an event that was lost with a failed server
-- ARGV[10] channel to publish the id on
-- ARGV[11] '1' if replicas have to hold the event before it is shown (mark-log.lua): then a
--          duplicate writes the tail again, so that a WAIT after it covers all earlier writes
-- ARGV[12] member of unfinished for the operation until its final state; empty if not recorded
-- ARGV[13] most members of unfinished
-- ARGV[14] the fact of the event: JSON list of texts, see StoredFact in facts.ts
-- ARGV[15] most failures that are kept of an external id
-- ARGV[16] id of the call that the event answers, settles or reports as not done; empty for none
--
-- Returns { 'stored', epoch, id, 1 for a conflict else 0, facts } or { 'duplicate', epoch, id of
-- the last event of the log }. The state of the external id after the event follows from facts:
-- JSON list of '1' if a hold is noted (else ''), folded, and the list of facts

local log, events, topic, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen_identity, unfinished, seen_body = KEYS[5], KEYS[6], KEYS[7]
local bytes, teller, operation, operation_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local rank, status, retention_ms = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local member, max_unfinished = ARGV[12], tonumber(ARGV[13])
local new_fact, max_failures = cjson.decode(ARGV[14]), tonumber(ARGV[15])
local last_seq = 0xffffff

-- Same as merge in merge.ts.
local function merge(held)
  if not held then
    return { replaces = true, late = false, conflict = false }
  end
  local another = held.operation_id ~= '' and operation_id ~= '' and held.operation_id ~= operation_id
  if rank ~= held.rank then
    local lower = rank < held.rank
    return { replaces = not lower, late = lower and not another and rank >= 0, conflict = false }
  end
  if rank < 2 or status == held.status then
    return { replaces = true, late = false, conflict = false }
  end
  return { replaces = status == 'success', late = false, conflict = not another }
end

local function is_duplicate(late)
  local told = redis.call('GET', seen_identity)
  if teller == 'c' then
    return told == 'c' or (seen_body ~= nil and redis.call('EXISTS', seen_body) == 1)
  end
  return late or told ~= false
end

-- Ids grow even if the clock stands still or is set back, as by a failover.
local function next_id(tail, now)
  local ms, seq = string.match(tail, '^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if now > ms then
    ms, seq = now, tonumber(ARGV[9])
  elseif seq < last_seq then
    seq = seq + 1
  else
    ms, seq = ms + 1, 0
  end
  return string.format('%.0f-%.0f', ms, seq)
end

-- The facts of states that were stored before facts were kept: without amounts. Same as
-- factsOfStates in facts.ts.
local function facts_of_states()
  local facts, fields = {}, redis.call('HGETALL', state)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 1) == '[' then
      local known = cjson.decode(fields[i + 1])
      local ms = string.match(known.id, '^%d+')
      facts[#facts + 1] =
        { fields[i], tostring(known.rank), known.status, known.operation_id, '', '', '', '', ms }
    end
  end
  table.sort(facts, function(a, b) return tonumber(a[9]) < tonumber(b[9]) end)
  return facts
end

local function fact_of(facts, key)
  for _, fact in ipairs(facts) do
    if fact[1] == key then
      return fact
    end
  end
end

-- Same as takeHold in facts.ts; position 8 of a fact is `held`.
local function take_hold(facts, fact)
  local holds, left = cjson.decode(redis.call('HGET', state, 'holds') or '[]'), {}
  for _, call in ipairs(holds) do
    if call ~= ARGV[16] then
      left[#left + 1] = call
    end
  end
  if #left < #holds then
    -- HSET even if no call is left: without memory Redis refuses it, but it would let a script go
    -- on whose first write is an HDEL.
    redis.call('HSET', state, 'holds', #left == 0 and '[]' or cjson.encode(left))
    if #left == 0 then
      redis.call('HDEL', state, 'holds')
    end
  end
  if cjson.decode(fact[1])[2] == 'call' then
    if #left < #holds and fact[8] == '1' then
      for _, one in ipairs(facts) do
        if one[8] == '' then one[8] = fact[8] end
      end
      redis.call('HSET', state, 'facts', cjson.encode(facts))
    end
    return false
  end
  local known = fact_of(facts, fact[1])
  if not known or fact[8] == '' or known[8] ~= '' then
    return false
  end
  known[8] = fact[8]
  redis.call('HSET', state, 'facts', cjson.encode(facts))
  return (fact[8] == '1') ~= (#holds > 0)
end

local function is_failure(fact)
  return fact[2] == '2' and fact[3] ~= 'success'
end

-- The facts that decide the state: one failure per kind of operation is enough, and those of
-- cancelled subjects. Otherwise each event would store all failed attempts before it.
local function in_brief(facts)
  if #facts <= 10 then
    return facts
  end
  local brief, keys, cancelled, failed = {}, {}, {}, {}
  for i, fact in ipairs(facts) do
    keys[i] = cjson.decode(fact[1])
    if keys[i][2] == 'cancel' then
      cancelled[keys[i][1]] = true
    end
  end
  for i, fact in ipairs(facts) do
    local subject, name = keys[i][1], keys[i][2]
    if not is_failure(fact) or cancelled[subject] or not failed[name] then
      brief[#brief + 1] = fact
    end
    failed[name] = failed[name] or is_failure(fact)
  end
  return brief
end

-- Same as noteWords in facts.ts; position 10 of a fact is its words.
local function note_words(facts, fact)
  local known = fact_of(facts, fact[1])
  if known and rank < 0 then
    known[10] = fact[10]
    redis.call('HSET', state, 'facts', cjson.encode(facts))
  end
end

-- Same as foldIn in facts.ts; positions 6 to 8 of a fact are amount, currency and `held`.
local function fold_in(facts, fact)
  local at
  for i, known in ipairs(facts) do
    if known[1] == fact[1] then at = i end
  end
  if at then
    for position = 6, 8 do
      if fact[position] == '' then fact[position] = facts[at][position] end
    end
    facts[at] = fact
  else
    facts[#facts + 1] = fact
  end
  local failures, oldest = 0, nil
  for i, known in ipairs(facts) do
    if is_failure(known) then
      failures = failures + 1
      oldest = oldest or i
    end
  end
  while failures > max_failures do
    local gone = table.remove(facts, oldest)
    redis.call('HDEL', state, gone[1], 'e' .. gone[1])
    redis.call('HINCRBY', state, 'folded', 1)
    failures = failures - 1
    while facts[oldest] and not is_failure(facts[oldest]) do
      oldest = oldest + 1
    end
  end
end

local held = redis.call('HGET', state, operation)
if held then
  held = cjson.decode(held)
end
local merged = merge(held)
local head = open(log, events, ARGV[8])
local known = redis.call('HGET', state, 'facts')
local facts = known and cjson.decode(known) or facts_of_states()
local changes_hold = take_hold(facts, new_fact)
if is_duplicate(merged.late) and not changes_hold then
  if ARGV[11] == '1' then
    redis.call('HSET', log, 'tail', head.tail)
  end
  return { 'duplicate', head.epoch, head.tail }
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id = next_id(head.tail, now)

redis.call('HSET', state, 'last', id)
if merged.replaces then
  local told = {
    rank = rank,
    status = status,
    operation_id = operation_id,
    since = held and held.since or id,
    id = id,
  }
  redis.call('HSET', state, operation, cjson.encode(told), 'e' .. operation, bytes)
  new_fact[9] = string.format('%.0f', now)
  fold_in(facts, new_fact)
  redis.call('HSET', state, 'facts', cjson.encode(facts))
else
  note_words(facts, new_fact)
end
local marks = redis.call('HMGET', state, 'holds', 'folded')
local after = cjson.encode({ marks[1] and '1' or '', marks[2] or '0', in_brief(facts) })

redis.call('XADD', events, id, 'p', head.tail, 'e', bytes, 'f', after)
redis.call('ZADD', topic, 0, member_of(id))
redis.call('HSET', log, 'tail', id, 'mark', ARGV[11] == '1' and head.mark or id)

if member ~= '' and merged.replaces then
  if rank == 2 then
    redis.call('ZREM', unfinished, member)
  -- In microseconds, so that operations of the same millisecond keep their order.
  elseif redis.call('ZADD', unfinished, 'NX',
      string.format('%.3f', now + (time[2] % 1000) / 1000), member) == 1 then
    redis.call('ZREMRANGEBYRANK', unfinished, 0, -max_unfinished - 1)
    redis.call('PEXPIRE', unfinished, 2 * retention_ms)
  end
end

if teller == 'c' then
  redis.call('SET', seen_identity, 'c', 'PX', retention_ms)
  if seen_body then
    redis.call('SET', seen_body, '', 'PX', retention_ms)
  end
else
  redis.call('SET', seen_identity, 'o', 'PX', retention_ms, 'NX')
end

-- Trims whole nodes of the stream, and 1,000 events at most, so that no append blocks others.
local oldest = string.format('%.0f-0', math.max(now - retention_ms, 0))
redis.call('XTRIM', events, 'MINID', '~', oldest, 'LIMIT', 1000)
redis.call('ZREMRANGEBYLEX', topic, '-', '(' .. member_of(oldest))
redis.call('PEXPIRE', events, retention_ms)
redis.call('PEXPIRE', topic, retention_ms)
redis.call('PEXPIRE', state, 2 * retention_ms)

-- Only a hint: readers also poll.
if ARGV[11] ~= '1' then
  redis.pcall('PUBLISH', ARGV[10], id)
end
return { 'stored', head.epoch, id, merged.conflict and 1 or 0, after }
