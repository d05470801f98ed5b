-- Reads records, and the bounds of the log, as they are at one instant.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3...] records
--
-- Returns { now in milliseconds, epoch, floor, watermark, fields and values of the first record as a
-- list, ... }

local time = redis.call('TIME')
local head = open(KEYS[1], KEYS[2])
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local answer = { now, head.epoch, floor_of(KEYS[2], head.tail), head.watermark }
for i = 3, #KEYS do
  local fields = redis.pcall('HGETALL', KEYS[i])
  -- A key of another type, with a text that nobody can read: no other record is concerned.
  answer[#answer + 1] = fields.err and { 't', fields.err } or fields
end
return answer
