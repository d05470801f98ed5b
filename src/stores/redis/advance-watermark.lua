-- Moves the watermark to an id, so that the events up to it may be shown: enough replicas hold them.
-- Never moves it back, and wakes the readers when it moves.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch of the id   ARGV[2] id
-- ARGV[3] channel to publish the id on

local log, events = KEYS[1], KEYS[2]
local id = ARGV[2]

-- The id may be of another log, or of events that this one has lost.
if redis.call('HGET', log, 'epoch') ~= ARGV[1] then return end
local head = open(log, events, ARGV[1])
if member_of(id) > member_of(head.watermark) and member_of(id) <= member_of(head.tail) then
  redis.call('HSET', log, 'mark', id)
  redis.pcall('PUBLISH', ARGV[3], id)
end
