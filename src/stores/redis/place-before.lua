-- Finds the id after which the newest events of an account come, of those that may be shown.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] how many events   ARGV[2] epoch for the log, if it does not exist yet
--
-- Returns { epoch, id }

local log, events = KEYS[1], KEYS[2]
local count = tonumber(ARGV[1])

local head = open(log, events, ARGV[2])
if count == 0 then
  return { head.epoch, head.watermark }
end
local newest = redis.call('XREVRANGE', events, head.watermark, '-', 'COUNT', count)
local first = newest[#newest]
return { head.epoch, first and first[2][2] or head.watermark }
