-- One commit (kernel.ts): records, events and indexes change together, or nothing does.
--
-- KEYS[1] log   KEYS[2] events   then the records, the topics of the events, and the indexes
-- ARGV[1] token   ARGV[2] epoch for the log, if it does not exist yet
-- ARGV[3] seq of the first event, if it is the first of its millisecond: random, so that it hardly
--         ever gets the id of an event that was lost with a failed server
-- ARGV[4] channel to publish the last id on
-- ARGV[5] '1' if replicas have to hold an event before it is shown (mark-log.lua): then a commit
--         without events writes the tail of the log again, so that a WAIT after it covers all
--         earlier writes
-- ARGV[6] retention of events in milliseconds   ARGV[7] how many records, ARGV[8] events,
-- ARGV[9] indexes   ARGV[10] '1' if a score is the commit's instant: the clock in microseconds, and
--         greater than at each commit before; then of each record: its version as supposed, how long
--         it is kept in milliseconds, '1' if it changes, its text (empty to remove it), and three
--         lists, each led by its length: expected flags and flags to set (names and values in turn),
--         attachments to set (likewise), attachments to remove (names); of each event: its bytes; of
--         each index: member, score (empty to remove it, 'instant' for the commit's), and how: '<' if
--         it leaves the index of the next key; else most members, less than 0 to leave a member as it
--         is; else empty
--
-- Returns { 'committed', now, epoch, instant or empty, id, ... } or { 'conflict', now, version, text,
-- values of the expected flags as a list, ... }; now in milliseconds

local log, events = KEYS[1], KEYS[2]
local token, retention_ms, awaits = ARGV[1], tonumber(ARGV[6]), ARGV[5] == '1'
local record_count, event_count, index_count = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local at = 10

local function take()
  at = at + 1
  return ARGV[at]
end

local function take_list(width)
  local list = {}
  for i = 1, tonumber(take()) * width do list[i] = take() end
  return list
end

-- The parts of the id after another one. Ids grow even if the clock stands still or is set back, as
-- by a failover.
local function next_parts(ms, seq, now)
  if now > ms then return now, tonumber(ARGV[3]) end
  if seq < 0xffffff then return ms, seq + 1 end
  return ms + 1, 0
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

local records, conflict = {}, false
for i = 1, record_count do
  local record = { key = KEYS[2 + i], was = take(), keep_ms = take(), changes = take() == '1', text = take() }
  record.expected, record.flags = take_list(2), take_list(2)
  record.attachments, record.removed = take_list(2), take_list(1)
  local fields = { 'v' }
  for n = 1, #record.expected, 2 do fields[#fields + 1] = 'f:' .. record.expected[n] end
  record.values = redis.call('HMGET', record.key, unpack(fields))
  record.found = table.remove(record.values, 1) or ''
  conflict = conflict or record.found ~= record.was
  for n = 1, #record.values do
    record.values[n] = record.values[n] or ''
    conflict = conflict or record.values[n] ~= record.expected[2 * n]
  end
  records[i] = record
end
if conflict then
  local answer = { 'conflict', now_text }
  for _, record in ipairs(records) do
    answer[#answer + 1] = record.found
    answer[#answer + 1] = redis.call('HGET', record.key, 't') or ''
    answer[#answer + 1] = record.values
  end
  return answer
end

local head = open(log, events, ARGV[2])
local instant = ''
if ARGV[10] == '1' then
  local last = tonumber(head.instant or 0)
  instant = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
  redis.call('HSET', log, 'instant', instant)
end
local answer, places, lasts, tail = { 'committed', now_text, head.epoch, instant }, {}, {}, head.tail
local ms, seq
if event_count > 0 then ms, seq = parts_of(tail) end
for i = 1, event_count do
  local topic, before = KEYS[2 + record_count + i], tail
  ms, seq = next_parts(ms, seq, now)
  tail = string.format('%.0f-%.0f', ms, seq)
  redis.call('XADD', events, tail, 'p', before, 'e', take())
  redis.call('ZADD', topic, 0, member_at(ms, seq))
  redis.call('PEXPIRE', topic, retention_ms)
  answer[#answer + 1] = tail
  -- What stands for it in records: a cursor without its epoch (cursor.ts).
  places[tostring(i - 1)] = string.format('%012x%06x', ms, seq)
  lasts[topic] = tail
end
places.now, places.instant = now_text, instant
if event_count > 0 then
  redis.call('HSET', log, 'tail', tail, 'mark', awaits and head.mark or tail)
  -- Trims whole nodes of the stream, and 1,000 events at most, so that no commit blocks others.
  local oldest = math.max(now - retention_ms, 0)
  redis.call('XTRIM', events, 'MINID', '~', string.format('%.0f-0', oldest), 'LIMIT', 1000)
  redis.call('PEXPIRE', events, retention_ms)
  for topic in pairs(lasts) do redis.call('ZREMRANGEBYLEX', topic, '-', '(' .. member_at(oldest, 0)) end
elseif awaits then
  redis.call('HSET', log, 'tail', tail)
end

-- A record's text with the values that only the store knows. Most of a text is none of them: a plain
-- search passes it many times faster than a pattern.
local function filled_in(text)
  local parts, from = {}, 1
  local first, last = string.find(text, token, 1, true)
  while first do
    local name = string.match(text, '^:(%w+)', last + 1)
    local value = name and places[name]
    parts[#parts + 1] = string.sub(text, from, first - 1)
    parts[#parts + 1] = value or token
    from = value and last + 2 + #name or last + 1
    first, last = string.find(text, token, from, true)
  end
  parts[#parts + 1] = string.sub(text, from)
  return table.concat(parts)
end

for _, record in ipairs(records) do
  if record.changes and record.text == '' then
    redis.call('DEL', record.key)
  elseif record.changes then
    local fields = { 'v', token, 't', filled_in(record.text) }
    if event_count > 0 then fields[5], fields[6] = 'l', tail end
    for n = 1, #record.flags, 2 do
      fields[#fields + 1], fields[#fields + 2] = 'f:' .. record.flags[n], record.flags[n + 1]
    end
    for n = 1, #record.attachments, 2 do
      fields[#fields + 1], fields[#fields + 2] = 'a:' .. record.attachments[n], record.attachments[n + 1]
    end
    redis.call('HSET', record.key, unpack(fields))
    for _, name in ipairs(record.removed) do redis.call('HDEL', record.key, 'a:' .. name) end
    redis.call('PEXPIRE', record.key, record.keep_ms)
  end
end

local key = 2 + record_count + event_count
for i = 1, index_count do
  key = key + 1
  local index, member, score, how = KEYS[key], take(), take(), take()
  if score == 'instant' then score = instant end
  if how == '<' then
    key = key + 1
    redis.call('ZREM', KEYS[key], member)
  end
  if score == '' then
    redis.call('ZREM', index, member)
  elseif how == '' or how == '<' then
    redis.call('ZADD', index, score, member)
  else
    local most = tonumber(how)
    local added = redis.call('ZADD', index, most < 0 and 'NX' or 'CH', score, member)
    if added == 1 then redis.call('ZREMRANGEBYRANK', index, 0, -math.abs(most) - 1) end
  end
end

-- Only a hint: readers also poll.
if event_count > 0 and not awaits then redis.pcall('PUBLISH', ARGV[4], tail) end
return answer
