--[[
Takes tokens of one merchant account's request budget for one replica, in one step: first what the
replica has to report is folded in, then tokens are granted, or a place in line.

A token comes back one window after it was taken, so that no second sees more than the limit; the
same arithmetic as in budget.ts, for all replicas together. Replicas whose callers wait stand in two
lines, money before reads. Each is told when its turn comes and asks again then; whoever is granted
something goes to the back.

KEYS[1]  state of the budget: string, MessagePack. Another layout needs another key.

ARGV[1]  what the replica asks and reports, as JSON:
  replica    its id
  state      id of the state that it heard of last, and that its reports are about; empty if none
  recent     true if it used tokens of that state within the last seconds
  returning  true if it went on alone since its last call: others may have done so too
  leaving    true if it stops
  limit      requests a second to assume where there is no state
  reserve    share of the capacity, 0 to 1, that is only for money
  money      tokens wanted for calls that move money
  reads      tokens wanted for other calls
  patienceMs longest that these callers wait
  spent      [[ms ago, tokens], ...] sent without being counted here
  unused     [[at, tokens], ...] taken here and never sent; `at` as granted
  told       limit that an answer told while the replica was alone, if any
  answer     {order, out, lowered, limit?, remaining?}: the newest answer and the take it belongs to
  rejected   {order, ms}: the upstream refused this take; nothing may be sent for that long

Returns JSON:
  id         of this state
  money      tokens granted for money; their orders and outs come first
  reads      tokens granted for reads
  at         when they were taken, ms of this state's clock
  order      of the take before the first one granted
  out        tokens out before the first one granted
  lowered    tokens that reports and answers have taken off, in all
  placed     true if the replica now has a place in line
  waitMs     until the first token for those who got none; absent if all got one
  againMs    when to ask again, if waitMs is there
  intervalMs time per token at the full rate
  aheadMoney, aheadReads     tokens that the other replicas in line want
  othersMoney, othersReads   how many of them there are
  limit, remaining, fullMs   the budget now; ms until it is full
  replicas   how many were seen lately, this one included

All times are milliseconds of a clock that begins with the state and never goes back.
]]

-- An account that nobody uses vanishes after this.
local KEEP_S = 86400
-- Takes are counted in cells of this length, each as of its end.
local CELL_MS = 5
-- As in budget.ts.
local JITTER_MS = 50
local MAX_LEARNED_MS = 3000
local LEARNED_HALF_LIFE_MS = 30000
-- As in local-bucket.ts: how much late callers are made up for.
local CATCH_UP_MS = 50
-- Nobody is told to ask again sooner, or later: places are given up and tokens given back meanwhile.
local MIN_PAUSE_MS = 5
local MAX_PAUSE_MS = 250
-- Tokens are kept for a replica from this long before its turn to this long after.
local EARLY_MS = 50
local LATE_MS = 100
-- A replica that was silent for this long, while others were not, is gone.
local REPLICA_MS = 5000
-- Part of the limit that all replicas use together when each is alone; as in redis-bucket.ts.
local ALONE_SHARE = 0.8

local request = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local wall = time[1] * 1000 + math.floor(time[2] / 1000)

local packed = redis.call('GET', KEYS[1])
local state = packed and cmsgpack.unpack(packed)
local strange = not state or state.id ~= request.state
local lost = strange and request.recent or not state and request.returning
if not state then
  state = {
    id = time[1] .. '.' .. time[2] .. '.' .. request.replica,
    skew = -wall, last = 0, limit = request.limit,
    times = {}, counts = {}, takes = 0, lowered = 0, answered = 0,
    paused = 0, paced = 0, explained = 0, learned = 0, learnedAt = 0,
    tickets = 0, replicas = {}
  }
end

-- After a failover, or when the server's clock is set back, time goes on from where it was.
local now = wall + state.skew
if now < state.last then
  state.skew = state.skew + state.last - now
  now = state.last
end

-- The budget -------------------------------------------------------------------------------------

local times, counts = state.times, state.counts
local size, capacity, window, interval, forReads = 0, 0, 0, 0, 0

local function learned()
  if state.learned == 0 then return 0 end
  return state.learned * 0.5 ^ ((now - state.learnedAt) / LEARNED_HALF_LIFE_MS)
end

local function measure()
  capacity = math.max(1, math.floor(state.limit))
  window = 1000 + JITTER_MS + learned()
  interval = window / capacity
  forReads = math.max(1, math.floor(capacity * (1 - request.reserve) + 1e-9))
end

local function forget()
  local keptTimes, keptCounts = {}, {}
  size = 0
  for i = 1, #times do
    if times[i] > now - window then
      keptTimes[#keptTimes + 1] = times[i]
      keptCounts[#keptCounts + 1] = counts[i]
      size = size + counts[i]
    end
  end
  times, counts = keptTimes, keptCounts
end

local function cellOf(at)
  return (math.floor(at / CELL_MS) + 1) * CELL_MS
end

local function insert(at, tokens)
  local cell = cellOf(at)
  if tokens < 1 or cell <= now - window then return end
  local i = #times
  while i > 0 and times[i] > cell do i = i - 1 end
  if i > 0 and times[i] == cell then
    counts[i] = counts[i] + tokens
  else
    table.insert(times, i + 1, cell)
    table.insert(counts, i + 1, tokens)
  end
  size = size + tokens
end

local function remove(cell, tokens)
  for i = #times, 1, -1 do
    if times[i] == cell then
      local gone = math.min(tokens, counts[i])
      counts[i] = counts[i] - gone
      size = size - gone
      return
    end
  end
end

-- Takes tokens off that were used elsewhere.
local function lower(tokens, at)
  if tokens < 1 then return end
  insert(at or now, tokens)
  state.lowered = state.lowered + tokens
end

-- When the nth latest token was taken.
local function latest(n)
  local seen = 0
  for i = #times, 1, -1 do
    seen = seen + counts[i]
    if seen >= n then return times[i] end
  end
  return -math.huge
end

local function countSince(at)
  local seen = 0
  for i = #times, 1, -1 do
    if times[i] <= at then break end
    seen = seen + counts[i]
  end
  return seen
end

local function setLimit(limit)
  if limit == state.limit then return end
  local tokens = math.max(0, capacity - size)
  if limit < state.limit then state.explained = state.takes end
  state.limit = limit
  measure()
  -- More capacity is not more tokens: those come at the new rate.
  lower(capacity - size - tokens)
end

-- What an answer tells was true when the upstream counted that call, so it is held against what was
-- left right after its take.
local function fold(answer)
  if answer.order < state.answered then return end
  state.answered = answer.order
  if answer.limit then setLimit(answer.limit) end
  if answer.remaining then
    local left = capacity - answer.out - (state.lowered - answer.lowered)
    lower(left - answer.remaining)
  end
end

local function reject(rejected)
  state.paused = math.max(state.paused, now + rejected.ms)
  if rejected.order > state.explained then
    state.learned = math.min(MAX_LEARNED_MS, math.max(JITTER_MS, 2 * learned()))
    state.learnedAt = now
    measure()
  end
  -- Calls already on their way meet the same shortage, and teach nothing new.
  state.explained = state.takes
end

measure()
forget()

-- The replicas -----------------------------------------------------------------------------------

local seenAfter = state.last - REPLICA_MS
local replicas, replicaCount = {}, 1
for id, replica in pairs(state.replicas) do
  if id ~= request.replica and replica.seen >= seenAfter then
    replicas[id] = replica
    replicaCount = replicaCount + 1
  end
end
local own = state.replicas[request.replica] or { money = 0, reads = 0, due = -1 }
own.seen = now

-- Reports ----------------------------------------------------------------------------------------

-- The state that others' takes were counted in is gone: assume the most.
if lost then lower(capacity - size) end

-- Alone, a replica begins without tokens. So who was heard within a window has spent none, and who
-- was silent for longer at most its share.
if request.returning then
  local share = math.max(1, math.floor(state.limit * ALONE_SHARE / replicaCount))
  for _, replica in pairs(replicas) do
    if now - math.max(replica.seen, replica.aside or 0) > window then
      replica.aside = now
      lower(share)
    end
  end
end

for _, spent in ipairs(request.spent) do lower(spent[2], now - spent[1]) end
if request.told then setLimit(request.told) end
if strange then
  -- Takes of another state mean nothing here.
  if request.rejected then request.rejected.order = 0 end
  if request.answer and request.answer.limit then setLimit(request.answer.limit) end
else
  for _, unused in ipairs(request.unused) do remove(unused[1], unused[2]) end
  if request.answer then fold(request.answer) end
end
if request.rejected then reject(request.rejected) end

-- The lines --------------------------------------------------------------------------------------

local function inLine(replica)
  return replica.money + replica.reads > 0 and now <= replica.due + LATE_MS
end

if not inLine(own) then own.moneyTicket, own.readsTicket = nil, nil end
local lined = inLine(own)
local ahead = { money = 0, reads = 0 }
local others = { money = 0, reads = 0 }
for _, replica in pairs(replicas) do
  if inLine(replica) then
    lined = true
    for line in pairs(ahead) do
      ahead[line] = ahead[line] + replica[line]
      if replica[line] > 0 then others[line] = others[line] + 1 end
    end
  end
end

-- At high rates several tokens come back before anyone may ask again.
local lot = math.max(1, math.ceil(MIN_PAUSE_MS / interval))

-- Tokens kept for other replicas in this line: for those before the ticket, and for all.
local function kept(line, ticket)
  local before, all = 0, 0
  for _, replica in pairs(replicas) do
    if replica[line] > 0 and inLine(replica) and replica.due - now <= EARLY_MS then
      local tokens = math.min(replica[line], lot)
      all = all + tokens
      if not ticket or replica[line .. 'Ticket'] < ticket then before = before + tokens end
    end
  end
  return before, all
end

local function free(line)
  if now < state.paused then return 0 end
  local tokens = capacity - size
  if line == 'reads' then
    tokens = math.min(tokens, forReads - countSince(now - forReads * interval))
  end
  if lined then
    -- Who waits is served no faster than the limit, so that one burst does not become another.
    local from = math.max(state.paced, now - CATCH_UP_MS)
    tokens = math.min(tokens, now < from and 0 or math.floor((now - from) / interval) + 1)
  end
  return math.max(0, tokens)
end

local grantedAt = cellOf(now)
local orderBefore, outBefore, loweredBefore = state.takes, size, state.lowered

-- `first` tokens go to others before anyone in this line gets one.
local function grant(line, want, first)
  local before, all = kept(line, own[line .. 'Ticket'])
  local tokens = free(line) - first
  tokens = math.min(want, math.max(math.min(lot, tokens - before), tokens - all))
  if tokens < 1 then return 0 end
  insert(now, tokens)
  state.takes = state.takes + tokens
  if lined then state.paced = math.max(state.paced, now - CATCH_UP_MS) + tokens * interval end
  own[line .. 'Ticket'] = nil
  return tokens
end

local money = grant('money', request.money, 0)
local unmetMoney = request.money - money
local reads = grant('reads', request.reads, ahead.money + unmetMoney)
local unmetReads = request.reads - reads

-- When one more token can be had after `tokens` others.
local function nextAt(line, tokens)
  local within = math.min(tokens, capacity - 1)
  local at = latest(capacity - within) + window + (tokens - within) * interval
  if line == 'reads' then
    within = math.min(tokens, forReads - 1)
    at = math.max(at, latest(forReads - within) + (forReads + tokens - within) * interval)
  end
  return math.max(at, state.paused, state.paced + tokens * interval)
end

local waitMs, againMs
local placed = false
own.money, own.reads, own.due = 0, 0, -1
if unmetMoney + unmetReads > 0 then
  local line, first = 'money', 0
  if unmetMoney == 0 then line, first = 'reads', ahead.money end
  local before = kept(line, own[line .. 'Ticket'])
  waitMs = math.max(MIN_PAUSE_MS, math.ceil(nextAt(line, first + before) - now))
  againMs = math.min(waitMs, MAX_PAUSE_MS)
  placed = waitMs <= request.patienceMs and not request.leaving
end
if placed then
  own.money, own.reads = unmetMoney, unmetReads
  own.due = now + againMs
  for _, line in ipairs({ 'moneyTicket', 'readsTicket' }) do
    if not own[line] then
      state.tickets = state.tickets + 1
      own[line] = state.tickets
    end
  end
else
  own.moneyTicket, own.readsTicket = nil, nil
end

-- The end ----------------------------------------------------------------------------------------

if not request.leaving then replicas[request.replica] = own end
state.replicas = replicas
state.times, state.counts = times, counts
state.last = now
redis.call('SET', KEYS[1], cmsgpack.pack(state), 'EX', KEEP_S)

local fullAt = math.max(now, state.paused, latest(1) + window)
return cjson.encode({
  id = state.id,
  money = money, reads = reads, at = grantedAt,
  order = orderBefore, out = outBefore, lowered = loweredBefore,
  placed = placed, waitMs = waitMs, againMs = againMs, intervalMs = interval,
  aheadMoney = ahead.money, aheadReads = ahead.reads,
  othersMoney = others.money, othersReads = others.reads,
  limit = capacity, remaining = now < state.paused and 0 or math.max(0, capacity - size),
  fullMs = fullAt - now, replicas = replicaCount
})
