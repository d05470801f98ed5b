-- Prepended to each script of a simulation. TIME returns the clock of the history, `simulation:now`
-- (microseconds). Times to live are kept in `simulation:expiry` and end by that clock (expire.lua).
-- Published messages are kept in `simulation:published` until the simulation delivers them. All
-- other commands run on the server as they are.

local redis = (function(server)
  local now = tonumber(server.call('GET', 'simulation:now'))

  local function lives_for(key, ms)
    if server.call('EXISTS', key) == 0 then
      return 0
    end
    server.call('ZADD', 'simulation:expiry', string.format('%.0f', now + ms * 1000), key)
    return 1
  end
  -- A deleted key loses its time to live, so that a new key of that name has none.
  local function forget(key)
    if server.call('EXISTS', key) == 0 then
      server.call('ZREM', 'simulation:expiry', key)
    end
  end

  local own = {
    TIME = function()
      return { string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000) }
    end,
    PEXPIRE = function(key, ms)
      return lives_for(key, tonumber(ms))
    end,
    SET = function(key, value, ...)
      local options, ms = {}, nil
      local at, given = 1, { ... }
      while at <= #given do
        if given[at] == 'PX' or given[at] == 'EX' then
          ms = tonumber(given[at + 1]) * (given[at] == 'EX' and 1000 or 1)
          at = at + 2
        else
          options[#options + 1] = given[at]
          at = at + 1
        end
      end
      local answer = server.call('SET', key, value, unpack(options))
      if answer then
        server.call('ZREM', 'simulation:expiry', key)
        if ms then
          lives_for(key, ms)
        end
      end
      return answer
    end,
    PUBLISH = function(channel, message)
      server.call('RPUSH', 'simulation:published', cjson.encode({ channel, message }))
      return 0
    end,
  }
  local removing = {
    DEL = true, UNLINK = true, HDEL = true, ZREM = true, XTRIM = true, ZREMRANGEBYSCORE = true,
    ZREMRANGEBYRANK = true, ZREMRANGEBYLEX = true,
  }
  local refused = { EXPIRE = true, EXPIREAT = true, PEXPIREAT = true, TTL = true, PTTL = true, SETEX = true,
    PSETEX = true, GETEX = true, PERSIST = true, RENAME = true, COPY = true }

  local function by(how)
    return function(name, ...)
      if own[name] then
        return own[name](...)
      end
      if refused[name] or name ~= string.upper(name) then
        error('the simulation knows no time for ' .. name)
      end
      local answer = how(name, ...)
      if removing[name] then
        for _, key in ipairs(name == 'DEL' and { ... } or name == 'UNLINK' and { ... } or { (...) }) do
          forget(key)
        end
      end
      return answer
    end
  end
  return setmetatable({ call = by(server.call), pcall = by(server.pcall) }, { __index = server })
end)(redis)
