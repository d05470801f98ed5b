-- Reads the newest events that may be shown, newest first: all of an account, or those of one payment
-- or payout.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] topic; absent for all events of the account
-- ARGV[1] most events   ARGV[2] id before which they come; empty for the newest
--
-- Returns { epoch, id, bytes, id, bytes, ... }; nil if there is no log

local log, events, topic = KEYS[1], KEYS[2], KEYS[3]

local epoch = redis.call('HGET', log, 'epoch')
if not epoch then
  return nil
end
local last, is_before = open(log, events, epoch).watermark, false
if ARGV[2] ~= '' and member_of(ARGV[2]) <= member_of(last) then
  last, is_before = ARGV[2], true
end
local answer = { epoch }
if not topic then
  local found = redis.call('XREVRANGE', events, (is_before and '(' or '') .. last, '-', 'COUNT', ARGV[1])
  for _, event in ipairs(found) do
    answer[#answer + 1] = event[1]
    answer[#answer + 1] = event[2][4]
  end
  return answer
end
last = (is_before and '(' or '[') .. member_of(last)
for _, member in ipairs(redis.call('ZREVRANGEBYLEX', topic, last, '-', 'LIMIT', 0, ARGV[1])) do
  local id = id_of(member)
  local fields = fields_of(events, id)
  -- A topic may keep ids a little longer than the account keeps events.
  if fields then
    answer[#answer + 1] = id
    answer[#answer + 1] = fields[4]
  end
end
return answer
