-- Functions that the other scripts share, to read the log of one account.
--
-- A place is the position of an event as cursor.ts has it: 12 hex digits of milliseconds, and 6 of a
-- count. Places sort as text. FIRST is before every event. The stream has an event under an id with the
-- same two numbers, "<ms>-<seq>". Each event carries the place of the one before it, so that the
-- oldest kept one names the last deleted one.

-- The number of the layout, as in import.ts.
local LAYOUT = '6'
local FIRST = string.rep('0', 18)

-- Opens the log; creates it with an epoch of its own, and with the number of the layout, if
-- it does not exist.
-- Returns { epoch, tail, watermark, instant }: the tail is the place of the last event ever appended.
-- The watermark is the place of the last event that may be shown: enough replicas hold all events up to
-- it; its field is `mark`. The instant is the latest that a commit asked for; may be false.
-- Fails if the log has another layout: a gateway that started while Redis was away has not seen it,
-- and another version's gateway may have begun the log anew.
local function open(log, events)
  local found = redis.call('HMGET', log, 'epoch', 'tail', 'mark', 'instant', 'layout')
  if found[1] then
    local layout = found[5] or '1'
    if layout ~= LAYOUT then
      error('its state is in layout ' .. layout .. ', and this gateway reads layout ' .. LAYOUT .. ' alone', 0)
    end
    return { epoch = found[1], tail = found[2], watermark = found[3], instant = found[4] }
  end
  -- It differs from that of every log that was lost before.
  local epoch = string.sub(redis.sha1hex(log .. table.concat(redis.call('TIME'), ' ')), 1, 8)
  redis.call('HSET', log, 'epoch', epoch, 'tail', FIRST, 'mark', FIRST, 'layout', LAYOUT)
  -- The new log must not contain the events of a log whose head was lost.
  redis.call('UNLINK', events)
  return { epoch = epoch, tail = FIRST, watermark = FIRST }
end

local function place_at(ms, seq)
  return string.format('%012x%06x', ms, seq)
end

local function parts_of(place)
  return tonumber(string.sub(place, 1, 12), 16), tonumber(string.sub(place, 13), 16)
end

local function id_of(place)
  return string.format('%d-%d', parts_of(place))
end

local function place_of(id)
  return place_at(string.match(id, '^(%d+)-(%d+)$'))
end

-- The fields of the event at this place, or nil: { 'p', place of the one before it, 'e', its bytes }.
local function fields_of(events, place)
  local id = id_of(place)
  local found = redis.call('XRANGE', events, id, id)[1]
  return found and found[2]
end

-- The place after which all events are kept: that of the last deleted one.
local function floor_of(events, tail)
  local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  return oldest and oldest[2][2] or tail
end
