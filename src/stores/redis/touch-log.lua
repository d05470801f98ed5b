-- Writes the tail of the log again, so that a WAIT after it covers all earlier writes. As a probe it
-- changes nothing, and fails if nothing can be committed now: the log has another layout, the server is
-- a replica, is full or cannot save, or its keys are being moved to another server.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] only of a probe: a key that is never there
--
-- Returns { epoch, place of the last event }

local head = open(KEYS[1], KEYS[2])
if KEYS[3] then
  redis.call('SET', KEYS[3], '', 'XX')
else
  redis.call('HSET', KEYS[1], 'tail', head.tail)
end
return { head.epoch, head.tail }
