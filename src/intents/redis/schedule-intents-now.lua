-- Makes the calls for external_ids due now, except running calls and calls that were given up.
--
-- KEYS[1] intents due   KEYS[2...] intents of each external_id
-- ARGV[1] prefix of an intent's key; its id follows
--
-- Returns 1 if one of the calls is due now, else 0

local due, prefix = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = 0

for i = 2, #KEYS do
  for _, field in ipairs(redis.call('HKEYS', KEYS[i])) do
    local id = string.match(field, '^open:(.+)$')
    local at = id and redis.call('ZSCORE', due, id)
    if at and tonumber(at) <= now then
      found = 1
    elseif at and redis.call('HGET', prefix .. id, 'state') ~= 'running' then
      redis.call('ZADD', due, string.format('%.0f', now), id)
      found = 1
    end
  end
end
return found
