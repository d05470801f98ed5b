-- KEYS[1] intents due
-- ARGV[1] most ids to return
--
-- Returns { now in milliseconds, ids of the intents that are due, the longest due first }

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGE', KEYS[1], '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, ARGV[1])
return { string.format('%.0f', now), ids }
