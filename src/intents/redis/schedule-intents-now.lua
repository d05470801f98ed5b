-- Makes intents due now, except those that are due already or are not looked at any more.
--
-- KEYS[1] intents due
-- ARGV[1...] ids

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(ARGV) do
  local at = redis.call('ZSCORE', KEYS[1], id)
  if at and tonumber(at) > now then
    redis.call('ZADD', KEYS[1], string.format('%.0f', now), id)
  end
end
