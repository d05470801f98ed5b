-- What the other scripts share: the log of one account, as it stands.
--
-- An id is "<ms>-<seq>", as Redis writes it; "0-0" is before every event. Each event of the stream
-- carries the id of the one before it, so that the first one tells what was forgotten last.

-- Opens the log; one that is not there begins anew with the given epoch.
-- Returns { epoch, tail, mark }: the tail is the id of the last event ever appended, the mark that of
-- the last one that may be shown: all up to it are held by as many replicas as have to hold them. A
-- log without a mark may be shown whole.
local function open(log, events, epoch)
  local held = redis.call('HMGET', log, 'epoch', 'tail', 'mark')
  if held[1] then
    return { epoch = held[1], tail = held[2], mark = held[3] or held[2] }
  end
  redis.call('HSET', log, 'epoch', epoch, 'tail', '0-0')
  -- Events of a log whose head was lost have no place in the new one.
  redis.call('UNLINK', events)
  return { epoch = epoch, tail = '0-0', mark = '0-0' }
end

-- The order of these texts is that of the ids: members of topics, which all have the same score. (A
-- stream for each topic would take 4 KiB at least.)
local function member_of(id)
  return string.format('%015.0f-%08.0f', string.match(id, '^(%d+)-(%d+)$'))
end

local function id_of(member)
  return string.format('%.0f-%.0f', string.match(member, '^(%d+)-(%d+)$'))
end

-- The fields of the event with this id, or nil: { 'p', id of the one before it, 'e', its bytes, 'f',
-- the facts after it }.
local function fields_of(events, id)
  local found = redis.call('XRANGE', events, id, id)[1]
  return found and found[2]
end

-- The id that all kept events are behind.
local function floor_of(events, tail)
  local oldest = redis.call('XRANGE', events, '-', '+', 'COUNT', 1)[1]
  return oldest and oldest[2][2] or tail
end
