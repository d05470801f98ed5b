-- Removes the members of an index whose record has expired.
--
-- KEYS[1] index   KEYS[2...] records   ARGV their members

for i, member in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 0 then redis.call('ZREM', KEYS[1], member) end
end
