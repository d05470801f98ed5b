-- One commit (kernel.ts): records, events and indexes change together, or nothing does.
--
-- KEYS[1] log   KEYS[2] events   then the records, the topics of the events, and the indexes
-- ARGV[1] the commit as JSON:
--   seq         of the first event, if it is the first of its millisecond: random, so that it hardly
--               ever gets the place of an event that was lost with a failed server
--   events      how many: their bytes are the next arguments
--   channel     to publish the last place on
--   awaits      replicas have to hold an event before it is shown (advance-watermark.lua): then a
--               commit without events writes the tail of the log again, so that a WAIT after it
--               covers all earlier writes
--   retentionMs of events
--   hasInstant  a score is the commit's instant: the clock in microseconds, and greater than at each
--               commit before
--   records     of each: names of fields that must be as supposed, and their values (the first is 'v',
--               its version; empty for a field that is not there); how: 'set', 'keep' or 'remove';
--               with 'set', keepMs, and three lists: fields, names and values in turn; beside, names
--               and the arguments that are their values in turn; and removed, names
--   indexes     in turn, a member and its score: empty to remove it, 'instant' for the commit's
-- Each argument costs gateway and driver more than Redis takes to read it as part of the JSON.
--
-- What only Redis knows, a record gets as its field 'p' ("<now> <instant> <place> ..."), for readers
-- to put into its text: here each byte of a text that is cut or joined costs as much as a command.
--
-- Returns { 'committed', now, epoch, instant or empty, place, ... } or { 'conflict', now, values of the
-- supposed fields of the first record as a list, its text, its 'p', ... }; now in milliseconds

local keys, given, call = KEYS, cjson.decode(ARGV[1]), redis.call
local log, events = keys[1], keys[2]
local retention_ms, awaits = given.retentionMs, given.awaits
local record_count, event_count = #given.records, given.events

-- The parts of the place after another one. Places grow even if the clock stands still or is set back,
-- as by a failover.
local function next_parts(ms, seq, now)
  if now > ms then return now, given.seq end
  if seq < 0xffffff then return ms, seq + 1 end
  return ms + 1, 0
end

local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6)
local now_text = time[1] .. string.sub(micros, 1, 3)

local head = open(log, events)
local conflict = false
for i, record in ipairs(given.records) do
  local found = redis.pcall('HMGET', keys[2 + i], unpack(record.names))
  -- A key of another type, with a text that nobody can read: no other record is concerned.
  if found.err then found, record.unreadable, conflict = {}, found.err, true end
  for n, value in ipairs(record.values) do
    found[n] = found[n] or ''
    conflict = conflict or found[n] ~= value
  end
  record.found = found
end
if conflict then
  local answer = { 'conflict', now_text }
  for i, record in ipairs(given.records) do
    local stored = record.unreadable and { record.unreadable } or call('HMGET', keys[2 + i], 't', 'p')
    answer[#answer + 1] = record.found
    answer[#answer + 1] = stored[1] or ''
    answer[#answer + 1] = stored[2] or ''
  end
  return answer
end

local instant = ''
if given.hasInstant then
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
    tail = place_at(ms, seq)
    call('XADD', events, string.format('%d-%d', ms, seq), 'p', before, 'e', ARGV[1 + i])
    -- Members with equal scores are sorted as text. A stream for each topic would take 4 KiB at least.
    call('ZADD', topic, 0, tail)
    call('PEXPIRE', topic, retention_ms)
    answer[#answer + 1] = tail
    places[#places + 1] = tail
  end
  -- Ten times a second at most: whole nodes of the stream are removed, and 1,000 events at a time, so
  -- that no commit blocks others. A topic may keep places a little longer than the account keeps events.
  if math.floor(ms / 100) > math.floor(was_ms / 100) then
    local oldest = math.max(now - retention_ms, 0)
    call('XTRIM', events, 'MINID', '~', string.format('%d-0', oldest), 'LIMIT', 1000)
    call('PEXPIRE', events, retention_ms + 100)
    for i = 1, event_count do
      call('ZREMRANGEBYLEX', keys[2 + record_count + i], '-', '(' .. place_at(oldest, 0))
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
for i, record in ipairs(given.records) do
  local key = keys[2 + i]
  if record.how == 'remove' then
    call('DEL', key)
  elseif record.how == 'set' then
    local fields = record.fields
    for n = 1, #record.beside, 2 do
      fields[#fields + 1] = record.beside[n]
      fields[#fields + 1] = ARGV[record.beside[n + 1]]
    end
    fields[#fields + 1] = 'p'
    fields[#fields + 1] = known
    if event_count > 0 then
      fields[#fields + 1] = 'l'
      fields[#fields + 1] = tail
    end
    call('HSET', key, unpack(fields))
    if #record.removed > 0 then call('HDEL', key, unpack(record.removed)) end
    call('PEXPIRE', key, record.keepMs)
  end
end

local before = 2 + record_count + event_count
for n = 1, #given.indexes / 2 do
  local index, member, score = keys[before + n], given.indexes[2 * n - 1], given.indexes[2 * n]
  if score == '' then
    call('ZREM', index, member)
  else
    call('ZADD', index, score == 'instant' and instant or score, member)
  end
end

-- Only a hint: readers also poll.
if event_count > 0 and not awaits then redis.pcall('PUBLISH', given.channel, tail) end
return answer
