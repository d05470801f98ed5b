-- Reads what has not come to its end, first what was told of longest ago.
--
-- KEYS[1] unfinished
-- ARGV[1] for how many milliseconds at least   ARGV[2] how many at most
-- ARGV[3] how long what the log knows of them is kept, in milliseconds
--
-- Returns { member, milliseconds since it was told of, member, milliseconds, ... }

local unfinished = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local function text(number)
  return string.format('%.3f', number)
end

redis.call('ZREMRANGEBYSCORE', unfinished, '-inf', text(now - ARGV[3]))
local found = redis.call('ZRANGE', unfinished, '-inf', text(now - ARGV[1]), 'BYSCORE',
  'LIMIT', 0, ARGV[2], 'WITHSCORES')
for at = 2, #found, 2 do
  found[at] = string.format('%.0f', now - found[at])
end
return found
