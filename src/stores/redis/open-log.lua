-- Functions that the other scripts share, to read the log of one account.
--
-- An id is "<ms>-<seq>", as Redis writes it; "0-0" is before every event. Each event of the stream
-- carries the id of the one before it, so that the oldest kept one names the last deleted one.

-- The number of the layout, as in import.ts.
local LAYOUT = '5'

-- Opens the log; creates it with the given epoch, and with the number of the layout, if
-- it does not exist.
-- Returns { epoch, tail, watermark, instant }: the tail is the id of the last event ever appended. The
-- watermark is the id of the last event that may be shown: enough replicas hold all events up to it;
-- its field is `mark`. A log without one may be shown whole. The instant is the latest that a commit
-- asked for; may be false.
-- Fails if the log has another layout: a gateway that started while Redis was away has not seen it,
-- and another version's gateway may have begun the log anew.
local function open(log, events, epoch)
  local found = redis.call('HMGET', log, 'epoch', 'tail', 'mark', 'instant', 'layout')
  if found[1] then
    local layout = found[5] or '1'
    if layout ~= LAYOUT then
      error('its state is in layout ' .. layout .. ', and this gateway reads layout ' .. LAYOUT .. ' alone', 0)
    end
    return { epoch = found[1], tail = found[2], watermark = found[3] or found[2], instant = found[4] }
  end
  redis.call('HSET', log, 'epoch', epoch, 'tail', '0-0', 'layout', LAYOUT)
  -- The new log must not contain the events of a log whose head was lost.
  redis.call('UNLINK', events)
  return { epoch = epoch, tail = '0-0', watermark = '0-0' }
end

local function parts_of(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

-- The id with these parts as a member of a topic. The members of a topic have equal scores, so Redis
-- sorts them as text, which is the order of the ids. (A stream for each topic would take 4 KiB at
-- least.)
local function member_at(ms, seq)
  return string.format('%015d-%08d', ms, seq)
end

local function member_of(id)
  return member_at(parts_of(id))
end

local function id_of(member)
  return string.format('%.0f-%.0f', string.match(member, '^(%d+)-(%d+)$'))
end

-- The fields of the event with this id, or nil: { 'p', id of the one before it, 'e', its bytes }.
local function fields_of(events, id)
  local found = redis.call('XRANGE', events, id, id)[1]
  return found and found[2]
end

-- The id after which all events are kept: that of the last deleted one.
local function floor_of(events, tail)
  local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  return oldest and oldest[2][2] or tail
end
