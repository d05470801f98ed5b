-- Reads the members of indexes with scores in a range, at one instant.
--
-- KEYS indexes   ARGV which of them, as ZRANGE takes it
--
-- Returns { member, score, ... } of one index after another

local answer = {}
for _, index in ipairs(KEYS) do
  for _, value in ipairs(redis.call('ZRANGE', index, unpack(ARGV))) do
    answer[#answer + 1] = value
  end
end
return answer
