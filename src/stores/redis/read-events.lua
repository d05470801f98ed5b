-- Reads events that may be shown, all of an account or those of one payment or payout: those after
-- an id, oldest first, or the newest, newest first.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] topic; absent for all events of the account
-- ARGV[1] id to read after; empty for the oldest kept
-- ARGV[2] most events; 0 for the bounds alone
-- ARGV[3] epoch for the log, if it does not exist yet
-- ARGV[4] id up to which the reading process has delivered all events   ARGV[5] epoch of that id;
--         both may be empty
-- ARGV[6] '1' for the newest: then ARGV[1] is the id before which they come, or empty
--
-- Returns { epoch, floor, watermark, known, up_to, tail, id, bytes, ... }: known is 1 if the
-- event to read after is kept or was the last one deleted, else 0. Oldest first it returns all events
-- of the topic up to up_to, and none after the watermark.

local log, events, topic = KEYS[1], KEYS[2], KEYS[3]
local limit, is_newest = tonumber(ARGV[2]), ARGV[6] == '1'
local after = is_newest and '' or ARGV[1]

local head = open(log, events, ARGV[3])
local floor = floor_of(events, head.tail)
local known = after == '' or after == floor or fields_of(events, after) ~= nil
-- A reader with a cursor was shown all events up to it, even if a failover has set the watermark back.
local watermark = head.watermark
if after ~= '' and known and member_of(after) > member_of(watermark) then
  watermark = after
end
-- A new reader in this process must not miss what was delivered, since it is not delivered again.
local shown = ARGV[4]
if ARGV[5] == head.epoch and member_of(shown) > member_of(watermark) and fields_of(events, shown) then
  watermark = shown
end
local answer = { head.epoch, floor, watermark, known and 1 or 0, watermark, head.tail }
if limit == 0 then
  return answer
end

local low, high, excluded = after == '' and floor or after, watermark, false
if is_newest and ARGV[1] ~= '' and member_of(ARGV[1]) <= member_of(watermark) then
  high, excluded = ARGV[1], true
end

-- Asks for what lies between two places, in the order that is wanted.
local function between(from, to, oldest, newest, key, ...)
  if is_newest then return redis.call(newest, key, to, from, ...) end
  return redis.call(oldest, key, from, to, ...)
end

local found
if topic then
  low, high = '(' .. member_of(low), (excluded and '(' or '[') .. member_of(high)
  found = between(low, high, 'ZRANGEBYLEX', 'ZREVRANGEBYLEX', topic, 'LIMIT', 0, limit)
  for at, member in ipairs(found) do
    local id = id_of(member)
    found[at] = { id, fields_of(events, id) }
  end
else
  low, high = '(' .. low, (excluded and '(' or '') .. high
  found = between(low, high, 'XRANGE', 'XREVRANGE', events, 'COUNT', limit)
end
for _, event in ipairs(found) do
  -- A topic may keep ids a little longer than the account keeps events.
  if event[2] then
    answer[#answer + 1] = event[1]
    answer[#answer + 1] = event[2][4]
  end
end
if #found == limit then
  answer[5] = found[limit][1]
end
return answer
