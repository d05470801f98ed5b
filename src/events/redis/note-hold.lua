-- Notes that a call is about to make a payment with `confirm: false`, or that it made none. Same as
-- withHold in facts.ts.
--
-- KEYS[1] state
-- ARGV[1] the call's id   ARGV[2] '1' if it is about to make one   ARGV[3] most calls noted
-- ARGV[4] retention in milliseconds

local state, call, most = KEYS[1], ARGV[1], tonumber(ARGV[3])

local holds = {}
for _, other in ipairs(cjson.decode(redis.call('HGET', state, 'holds') or '[]')) do
  if other ~= call then
    holds[#holds + 1] = other
  end
end
if ARGV[2] == '1' then
  holds[#holds + 1] = call
end
while #holds > most do
  table.remove(holds, 1)
end
-- cjson would write an empty list as an object.
if #holds == 0 then
  redis.call('HDEL', state, 'holds')
else
  redis.call('HSET', state, 'holds', cjson.encode(holds))
end
redis.call('PEXPIRE', state, 2 * tonumber(ARGV[4]))
