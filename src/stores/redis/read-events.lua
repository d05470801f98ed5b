-- Reads events that may be shown, all of an account or those of one payment or payout: those after
-- a place, oldest first, or the newest, newest first.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] topic; absent for all events of the account
-- ARGV[1] place to read after; empty for the oldest kept
-- ARGV[2] most events; 0 for the bounds alone
-- ARGV[3] place up to which the reading process has delivered all events   ARGV[4] its epoch; both
--         may be empty
-- ARGV[5] '1' for the newest: then ARGV[1] is the place before which they come, or empty
--
-- Returns { epoch, floor, watermark, known, up_to, tail, place, bytes, ... }: known is 1 if the
-- event to read after is kept or was the last one deleted, else 0. Oldest first it returns all events
-- of the topic up to up_to, and none after the watermark.

local log, events, topic = KEYS[1], KEYS[2], KEYS[3]
local limit, is_newest = tonumber(ARGV[2]), ARGV[5] == '1'
local after = is_newest and '' or ARGV[1]

local head = open(log, events)
local floor = floor_of(events, head.tail)
local known = after == '' or after == floor or fields_of(events, after) ~= nil
-- A reader with a cursor was shown all events up to it, even if a failover has set the watermark back.
local watermark = head.watermark
if known and after > watermark then watermark = after end
-- A new reader in this process must not miss what was delivered, since it is not delivered again.
local shown = ARGV[3]
if ARGV[4] == head.epoch and shown > watermark and fields_of(events, shown) then
  watermark = shown
end
local answer = { head.epoch, floor, watermark, known and 1 or 0, watermark, head.tail }
if limit == 0 then
  return answer
end

local low, high, excluded = after == '' and floor or after, watermark, ''
if is_newest and ARGV[1] ~= '' and ARGV[1] <= watermark then
  high, excluded = ARGV[1], '('
end

-- Asks for what lies between two places, in the order that is wanted.
local function between(from, to, oldest, newest, key, ...)
  if is_newest then return redis.call(newest, key, to, from, ...) end
  return redis.call(oldest, key, from, to, ...)
end

local found
if topic then
  if excluded == '' then excluded = '[' end
  found = between('(' .. low, excluded .. high, 'ZRANGEBYLEX', 'ZREVRANGEBYLEX', topic, 'LIMIT', 0, limit)
  for at, place in ipairs(found) do found[at] = { place, fields_of(events, place) } end
else
  low, high = '(' .. id_of(low), excluded .. id_of(high)
  found = between(low, high, 'XRANGE', 'XREVRANGE', events, 'COUNT', limit)
  -- Only the newest one's place has to be made of its id: each event has that of the one before it.
  local place
  for at = 1, #found do
    local event = found[is_newest and at or #found + 1 - at]
    event[1], place = place or place_of(event[1]), event[2][2]
  end
end
for _, event in ipairs(found) do
  -- A topic may keep places a little longer than the account keeps events.
  if event[2] then
    answer[#answer + 1] = event[1]
    answer[#answer + 1] = event[2][4]
  end
end
if #found == limit then
  answer[5] = found[limit][1]
end
return answer
