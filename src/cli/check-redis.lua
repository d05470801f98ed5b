-- Runs the commands of the gateway's own scripts, on keys with the gateway's names, and leaves nothing
-- behind.
--
-- KEYS[1] lease   KEYS[2] record   KEYS[3] index   KEYS[4] events   KEYS[5] channel

local call = redis.call
call('SET', KEYS[1], '1', 'PX', 10000)
call('GET', KEYS[1])
call('EXISTS', KEYS[1])
call('HSET', KEYS[2], 'a', '1')
call('HGET', KEYS[2], 'a')
call('HMGET', KEYS[2], 'a')
call('HGETALL', KEYS[2])
call('HDEL', KEYS[2], 'b')
call('PEXPIRE', KEYS[2], 10000)
call('ZADD', KEYS[3], 0, 'a')
call('ZCARD', KEYS[3])
call('ZRANGEBYLEX', KEYS[3], '-', '+')
call('ZREVRANGEBYLEX', KEYS[3], '+', '-')
call('ZRANGEBYSCORE', KEYS[3], 0, 0)
call('ZREVRANGEBYSCORE', KEYS[3], 0, 0)
call('ZREM', KEYS[3], 'b')
call('ZREMRANGEBYLEX', KEYS[3], '(a', '+')
call('ZREMRANGEBYRANK', KEYS[3], 1, -1)
call('XADD', KEYS[4], '*', 'a', '1')
call('XRANGE', KEYS[4], '-', '+')
call('XREVRANGE', KEYS[4], '+', '-')
call('XTRIM', KEYS[4], 'MAXLEN', 1)
call('PUBLISH', KEYS[5], '1')
call('TIME')
call('UNLINK', KEYS[1])
return call('DEL', KEYS[2], KEYS[3], KEYS[4])
