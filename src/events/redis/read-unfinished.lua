-- Reads operations without a final state, oldest first.
--
-- KEYS[1] unfinished
-- ARGV[1] least age in milliseconds   ARGV[2] most operations
-- ARGV[3] how long states are kept, in milliseconds: older operations are deleted
--
-- Returns { member, age in milliseconds, member, age, ... }

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
