-- Runs a command of each kind that the gateway's scripts use, on keys with the gateway's names, and
-- leaves nothing behind.
--
-- KEYS[1] probe   KEYS[2] record   KEYS[3] index   KEYS[4] events   KEYS[5] channel

redis.call('SET', KEYS[1], '1', 'PX', 10000)
redis.call('HSET', KEYS[2], 'a', '1')
redis.call('ZADD', KEYS[3], 0, 'a')
redis.call('XADD', KEYS[4], '*', 'a', '1')
redis.call('PUBLISH', KEYS[5], '1')
return redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
