-- Notes that a payment is about to be made with `confirm: false`.
--
-- KEYS[1] state
-- ARGV[1] retention in milliseconds

redis.call('HSET', KEYS[1], 'held', '1')
redis.call('PEXPIRE', KEYS[1], 2 * tonumber(ARGV[1]))
