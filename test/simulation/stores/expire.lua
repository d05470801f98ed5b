-- Sets the clock of a simulation (virtual-time.lua), and deletes the keys that have expired.
--
-- ARGV[1] now in microseconds

redis.call('SET', 'simulation:now', ARGV[1])
local over = '(' .. ARGV[1]
for _, key in ipairs(redis.call('ZRANGEBYSCORE', 'simulation:expiry', '-inf', over)) do
  redis.call('DEL', key)
end
redis.call('ZREMRANGEBYSCORE', 'simulation:expiry', '-inf', over)
