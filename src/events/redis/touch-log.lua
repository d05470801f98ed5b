-- Writes the end of the log once more: a WAIT behind it vouches for all that was written before.
--
-- KEYS[1] log   KEYS[2] events
-- ARGV[1] epoch of the log, should it not be there yet
--
-- Returns { epoch, id of the last event }

local head = open(KEYS[1], KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'tail', head.tail)
return { head.epoch, head.tail }
