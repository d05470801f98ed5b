-- Reads the newest events of one payment or payout that may be shown, newest first.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] topic
-- ARGV[1] most events   ARGV[2] id before which they come; empty for the newest
--
-- Returns { epoch, id, bytes, id, bytes, ... }; nil if there is no log

local log, events, topic = KEYS[1], KEYS[2], KEYS[3]

local epoch = redis.call('HGET', log, 'epoch')
if not epoch then
  return nil
end
local watermark = member_of(open(log, events, epoch).watermark)
local last = '[' .. watermark
if ARGV[2] ~= '' and member_of(ARGV[2]) <= watermark then
  last = '(' .. member_of(ARGV[2])
end
local answer = { epoch }
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
