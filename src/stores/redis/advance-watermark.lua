-- Moves the watermark to an id, so that the events up to it may be shown: enough replicas hold them.
-- Never moves it back, and wakes the readers when it moves.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch of the id   ARGV[2] id
-- ARGV[3] channel to publish the id on
--
-- Returns 1 if all events up to the id may be shown, else 0: the id is of another log, or ahead of
-- this one

local log, events = KEYS[1], KEYS[2]
local id = ARGV[2]

local epoch = redis.call('HGET', log, 'epoch')
if epoch ~= ARGV[1] then
  return 0
end
local head = open(log, events, epoch)
if member_of(id) > member_of(head.tail) then
  return 0
end
if member_of(id) > member_of(head.watermark) then
  redis.call('HSET', log, 'mark', id)
  redis.pcall('PUBLISH', ARGV[3], id)
end
return 1
