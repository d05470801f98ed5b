-- One commit (kernel.ts): records, events and indexes change together, or nothing does.
--
-- KEYS[1] log   KEYS[2] events   then the records, the topics of the events, and the indexes
-- ARGV[1] epoch for the log, if it does not exist yet
-- ARGV[2] seq of the first event, if it is the first of its millisecond: random, so that it hardly
--         ever gets the id of an event that was lost with a failed server
-- ARGV[3] channel to publish the last id on
-- ARGV[4] '1' if replicas have to hold an event before it is shown (advance-watermark.lua): then a commit
--         without events writes the tail of the log again, so that a WAIT after it covers all
--         earlier writes
-- ARGV[5] retention of events in milliseconds   ARGV[6] how many records, ARGV[7] events,
-- ARGV[8] indexes   ARGV[9] '1' if a score is the commit's instant: the clock in microseconds, and
--         greater than at each commit before; then
--   of each event, its bytes;
--   of each record, the names of fields that must be as supposed, a list, and their values (the first
--         is 'v', its version; empty for a field that is not there); then 'set', 'keep' or 'remove';
--         with 'set', how long it is kept in milliseconds, and three lists: names and values of fields
--         in turn, names and events (their numbers) whose bytes they get in turn, and names of fields
--         to remove. An empty text ends a list: to read a number costs as much as to walk past ten;
--   of each index, member, score (empty to remove it, 'instant' for the commit's), and how: '<' if it
--         leaves the index of the next key; else most members, less than 0 to leave a member as it
--         is; else empty
--
-- What only Redis knows, a record gets as its field 'p' ("<now> <instant> <place> ..."), for readers
-- to put into its text: here each byte of a text that is cut or joined costs as much as a command.
--
-- Returns { 'committed', now, epoch, instant or empty, id, ... } or { 'conflict', now, values of the
-- supposed fields of the first record as a list, its text, its 'p', ... }; now in milliseconds

local keys, given, call = KEYS, ARGV, redis.call
local log, events = keys[1], keys[2]
local retention_ms, awaits = given[5], given[4] == '1'
local record_count, event_count, index_count = tonumber(given[6]), tonumber(given[7]), tonumber(given[8])

-- The parts of the id after another one. Ids grow even if the clock stands still or is set back, as
-- by a failover.
local function next_parts(ms, seq, now)
  if now > ms then return now, tonumber(given[2]) end
  if seq < 0xffffff then return ms, seq + 1 end
  return ms + 1, 0
end

local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6)
local now_text = time[1] .. string.sub(micros, 1, 3)

-- The end of the list that begins here, whose items take so many arguments.
local function end_of(first, width)
  while given[first] ~= '' do first = first + width end
  return first
end

local at, records, conflict = 10 + event_count, {}, false
for i = 1, record_count do
  local names = end_of(at, 1)
  local count = names - at
  local values = call('HMGET', keys[2 + i], unpack(given, at, names - 1))
  for n = 1, count do
    values[n] = values[n] or ''
    conflict = conflict or values[n] ~= given[names + n]
  end
  at = names + count + 1
  local record = { values = values, at = at }
  if given[at] == 'set' then
    record.fields_end = end_of(at + 2, 2)
    record.bytes_end = end_of(record.fields_end + 1, 2)
    record.removed_end = end_of(record.bytes_end + 1, 1)
    at = record.removed_end
  end
  records[i] = record
  at = at + 1
end
if conflict then
  local answer = { 'conflict', now_text }
  for i, record in ipairs(records) do
    local stored = call('HMGET', keys[2 + i], 't', 'p')
    answer[#answer + 1] = record.values
    answer[#answer + 1] = stored[1] or ''
    answer[#answer + 1] = stored[2] or ''
  end
  return answer
end

local head = open(log, events, given[1])
local instant = ''
if given[9] == '1' then
  instant = time[1] .. micros
  local last = tonumber(head.instant or 0)
  if tonumber(instant) <= last then instant = string.format('%d', last + 1) end
end
local answer, places, tail = { 'committed', now_text, head.epoch, instant }, { now_text, instant }, head.tail
if event_count > 0 then
  local now, ms, seq = tonumber(now_text), parts_of(tail)
  local was_ms = ms
  for i = 1, event_count do
    local topic, before = keys[2 + record_count + i], tail
    ms, seq = next_parts(ms, seq, now)
    tail = string.format('%d-%d', ms, seq)
    call('XADD', events, tail, 'p', before, 'e', given[9 + i])
    call('ZADD', topic, 0, member_at(ms, seq))
    call('PEXPIRE', topic, retention_ms)
    answer[#answer + 1] = tail
    -- What stands for it in records: a cursor without its epoch (cursor.ts).
    places[#places + 1] = string.format('%012x%06x', ms, seq)
  end
  -- Ten times a second at most: whole nodes of the stream are removed, and 1,000 events at a time, so
  -- that no commit blocks others. A topic may keep ids a little longer than the account keeps events.
  if math.floor(ms / 100) > math.floor(was_ms / 100) then
    local oldest = math.max(now - tonumber(retention_ms), 0)
    call('XTRIM', events, 'MINID', '~', string.format('%d-0', oldest), 'LIMIT', 1000)
    call('PEXPIRE', events, retention_ms + 100)
    for i = 1, event_count do
      call('ZREMRANGEBYLEX', keys[2 + record_count + i], '-', '(' .. member_at(oldest, 0))
    end
  end
  local watermark = awaits and head.watermark or tail
  if instant == '' then
    call('HSET', log, 'tail', tail, 'mark', watermark)
  else
    call('HSET', log, 'tail', tail, 'mark', watermark, 'instant', instant)
  end
else
  if instant ~= '' then call('HSET', log, 'instant', instant) end
  if awaits then call('HSET', log, 'tail', tail) end
end

local known = table.concat(places, ' ')
for i, record in ipairs(records) do
  local key, what = keys[2 + i], given[record.at]
  if what == 'remove' then
    call('DEL', key)
  elseif what == 'set' then
    local fields = { 'p', known, unpack(given, record.at + 2, record.fields_end - 1) }
    for n = record.fields_end + 1, record.bytes_end - 1, 2 do
      fields[#fields + 1] = given[n]
      fields[#fields + 1] = given[10 + given[n + 1]]
    end
    if event_count > 0 then
      fields[#fields + 1] = 'l'
      fields[#fields + 1] = tail
    end
    call('HSET', key, unpack(fields))
    if record.removed_end > record.bytes_end + 1 then
      call('HDEL', key, unpack(given, record.bytes_end + 1, record.removed_end - 1))
    end
    call('PEXPIRE', key, given[record.at + 1])
  end
end

local key = 2 + record_count + event_count
for i = 1, index_count do
  key = key + 1
  local index, member, score, how = keys[key], given[at], given[at + 1], given[at + 2]
  at = at + 3
  if score == 'instant' then score = instant end
  if how == '<' then
    key = key + 1
    call('ZREM', keys[key], member)
  end
  if score == '' then
    call('ZREM', index, member)
  elseif how == '' or how == '<' then
    call('ZADD', index, score, member)
  else
    local most = tonumber(how)
    local added = call('ZADD', index, most < 0 and 'NX' or 'CH', score, member)
    if added == 1 then call('ZREMRANGEBYRANK', index, 0, -math.abs(most) - 1) end
  end
end

-- Only a hint: readers also poll.
if event_count > 0 and not awaits then redis.pcall('PUBLISH', given[3], tail) end
return answer
