-- Lets events be shown: all up to an id are held by as many replicas as have to hold them. The mark
-- never goes back, and wakes the readers when it moves.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch that the id is of   ARGV[2] id
-- ARGV[3] channel to tell the id on
--
-- Returns 1 if all up to the id may be shown, else 0: it is of another log, or ahead of this one

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
if member_of(id) > member_of(head.mark) then
  redis.call('HSET', log, 'mark', id)
  redis.pcall('PUBLISH', ARGV[3], id)
end
return 1
