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
--         it leaves the index of the next key, else empty, or '1' to leave a member as it is, ':', and
--         most members or 0
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

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

local records, conflict = {}, false
for i = 1, record_count do
  local record = { key = KEYS[2 + i], was = take(), keep_ms = take(), changes = take() == '1', text = take() }
  record.expected, record.flags = take_list(2), take_list(2)
  record.attachments, record.removed = take_list(2), take_list(1)
  record.found = redis.call('HGET', record.key, 'v') or ''
  conflict = conflict or record.found ~= record.was
  record.values = {}
  for n = 1, #record.expected, 2 do
    local value = redis.call('HGET', record.key, 'f:' .. record.expected[n]) or ''
    record.values[#record.values + 1] = value
    conflict = conflict or value ~= record.expected[n + 1]
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
  local last = tonumber(redis.call('HGET', log, 'instant') or 0)
  instant = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
  redis.call('HSET', log, 'instant', instant)
end
local answer, places, lasts, tail = { 'committed', now_text, head.epoch, instant }, {}, {}, head.tail
for i = 1, event_count do
  local topic, before = KEYS[2 + record_count + i], tail
  tail = next_id(before, now, tonumber(ARGV[3]))
  redis.call('XADD', events, tail, 'p', before, 'e', take())
  redis.call('ZADD', topic, 0, member_of(tail))
  redis.call('PEXPIRE', topic, retention_ms)
  answer[#answer + 1] = tail
  places[tostring(i - 1)] = place_of(tail)
  lasts[topic] = tail
end
places.now, places.instant = now_text, instant
if event_count > 0 then
  redis.call('HSET', log, 'tail', tail, 'mark', awaits and head.mark or tail)
  -- Trims whole nodes of the stream, and 1,000 events at most, so that no commit blocks others.
  local oldest = string.format('%.0f-0', math.max(now - retention_ms, 0))
  redis.call('XTRIM', events, 'MINID', '~', oldest, 'LIMIT', 1000)
  redis.call('PEXPIRE', events, retention_ms)
  for topic in pairs(lasts) do redis.call('ZREMRANGEBYLEX', topic, '-', '(' .. member_of(oldest)) end
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
    local only_new, most = string.match(how, '^(1?):(%d+)$')
    local added = redis.call('ZADD', index, only_new == '1' and 'NX' or 'CH', score, member)
    if added == 1 and tonumber(most) > 0 then redis.call('ZREMRANGEBYRANK', index, 0, -most - 1) end
  end
end

-- Only a hint: readers also poll.
if event_count > 0 and not awaits then redis.pcall('PUBLISH', ARGV[4], tail) end
return answer
