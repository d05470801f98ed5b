-- Reads the members of indexes with scores in a range, at one instant.
--
-- KEYS indexes
-- ARGV[1] lowest score   ARGV[2] highest score   ARGV[3] most members of each index
-- ARGV[4] '1' for the highest scores first, else the lowest
--
-- Returns { member, score, ... } of one index after another

local answer = {}
for _, index in ipairs(KEYS) do
  local found
  if ARGV[4] == '1' then
    found = redis.call('ZREVRANGEBYSCORE', index, ARGV[2], ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  else
    found = redis.call('ZRANGEBYSCORE', index, ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  end
  for _, value in ipairs(found) do answer[#answer + 1] = value end
end
return answer
