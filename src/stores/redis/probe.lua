-- Fails if nothing can be committed now: the log has another layout, the server is a replica, is full
-- or cannot save, or its keys are being moved to another server. It changes nothing.
--
-- KEYS[1] log   KEYS[2] events   KEYS[3] key that is never there
-- ARGV[1] epoch for the log, if it does not exist yet

open(KEYS[1], KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], '', 'XX')
