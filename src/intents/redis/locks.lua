-- Locks on an external_id, one list per method: each open call that has no understood answer holds
-- its own, so that a call that is adopted beside another one neither takes nor releases that lock.
-- A field `lock:<method>` maps call ids to the time until which each lock is valid, in milliseconds
-- since the epoch.

local function locks_of(subject, method)
  return cjson.decode(redis.call('HGET', subject, 'lock:' .. method) or '{}')
end

local function store_locks(subject, method, locks)
  if next(locks) == nil then
    redis.call('HDEL', subject, 'lock:' .. method)
  else
    redis.call('HSET', subject, 'lock:' .. method, cjson.encode(locks))
  end
end

-- Whether a call of the method holds a lock that is still valid.
local function is_locked(subject, method, now)
  for _, lock_until in pairs(locks_of(subject, method)) do
    if tonumber(lock_until) > now then
      return true
    end
  end
  return false
end

-- Takes a lock for a call, and removes those that have run out.
local function lock(subject, method, id, lock_until, now)
  local valid = {}
  for other, other_until in pairs(locks_of(subject, method)) do
    if tonumber(other_until) > now then
      valid[other] = other_until
    end
  end
  if lock_until > now then
    valid[id] = string.format('%.0f', lock_until)
  end
  store_locks(subject, method, valid)
end

-- Releases a call's own lock.
local function unlock(subject, method, id)
  local locks = locks_of(subject, method)
  if locks[id] then
    locks[id] = nil
    store_locks(subject, method, locks)
  end
end
