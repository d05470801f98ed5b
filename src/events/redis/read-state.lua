-- Reads the states of one payment or payout, and the bounds of the log.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] state
--
-- Returns { epoch, floor, mark, tail, field, value, field, value, ... }, the fields as
-- append-event.lua writes them; nil if nothing is known

local log, events, state = KEYS[1], KEYS[2], KEYS[3]

local fields = redis.call('HGETALL', state)
local epoch = redis.call('HGET', log, 'epoch')
-- A noted hold alone is not a state.
if redis.call('HEXISTS', state, 'last') == 0 or not epoch then
  return nil
end
local head = open(log, events, epoch)
local answer = { epoch, floor_of(events, head.tail), head.mark, head.tail }
for _, text in ipairs(fields) do
  answer[#answer + 1] = text
end
return answer
