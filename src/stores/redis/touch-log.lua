-- Writes the tail of the log again, so that a WAIT after it covers all earlier writes.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch for the log, if it does not exist yet
--
-- Returns { epoch, id of the last event }

local head = open(KEYS[1], KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'tail', head.tail)
return { head.epoch, head.tail }
