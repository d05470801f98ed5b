-- Moves the watermark to a place, so that the events up to it may be shown: enough replicas hold them.
-- Never moves it back, and wakes the readers when it moves.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch of the place   ARGV[2] place
-- ARGV[3] channel to publish the place on

local log, place = KEYS[1], ARGV[2]

-- The place may be of another log, or of events that this one has lost.
if redis.call('HGET', log, 'epoch') ~= ARGV[1] then return end
local head = open(log, KEYS[2])
if place > head.watermark and place <= head.tail then
  redis.call('HSET', log, 'mark', place)
  redis.pcall('PUBLISH', ARGV[3], place)
end
