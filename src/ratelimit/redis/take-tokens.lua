--[[
Takes tokens from one merchant account's request budget for one replica, in one step: first applies
the replica's reports, then grants tokens, or places in line.

A token comes back one window after it was taken, so that no second sees more than the limit; the
same arithmetic as in budget.ts, for all replicas together. Waiting calls form two lines, money
before reads. In each line callers take turns, at whichever replica they wait. The reply says when
the replica's first turn comes; the replica asks again then.

KEYS[1]  state of the budget: string, MessagePack. A changed layout needs another key.

ARGV[1]  what the replica wants and reports, as JSON:
  replica    its id
  state      id of the state in the last reply, which the reports are about; empty if none
  counted    as in the last reply; 0 if none
  out?       tokens of its own budget that are out, if it used that: others may have done so too
  limit      requests a second to assume where there is no state
  reserve    share of the capacity, 0 to 1, that is only for money
  wants      {money, read}: {caller: tokens} for calls that move money and for others; the names of
             customers begin with `c:`
  answer     {order?, out, lowered, limit?, remaining?}: the newest answer and the take it belongs to;
             its limit alone if that take was not of this state
  rejected   {order, ms}: the upstream refused this take; nothing may be sent for that long
ARGV[2]  the constants of budget.ts, as JSON: `budgetRules`

Returns JSON:
  id         of this state
  money, read    the reply to each line's wants
    granted  {caller: tokens}; the orders and outs of those for money come first
    unmet    tokens wanted and not granted
    nextMs   until the next token of this line, whoever gets it
    perOwn   tokens that the replicas in line get, about, while this one gets one
  order      of the take before the first one granted
  out        tokens out before the first one granted
  lowered    tokens that reports and answers have taken off, in all
  counted    tokens that were ever granted to this replica
  againMs    when to ask again, if some got none
  intervalMs time per token at the full rate
  limit, remaining, fullMs   the budget now; ms until it is full
  replicas   how many were seen lately, this one included

All times are milliseconds of a clock that begins with the state and never goes back.
]]

-- The state of an account that is not used expires after this.
local KEEP_S = 86400
-- Takes are counted in cells of this length, each as of its end.
local CELL_MS = 5
-- Shortest and longest pause that a reply asks for. The longest is short, since places are given up
-- and tokens given back meanwhile.
local MIN_PAUSE_MS = 5
local MAX_PAUSE_MS = 250
-- Tokens are kept for a replica until this long after it was to ask.
local LATE_MS = 100
-- A replica that was silent for this long before the last request of any replica is gone.
local REPLICA_MS = 5000

local rules = cjson.decode(ARGV[2])
local request = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local wall = time[1] * 1000 + math.floor(time[2] / 1000)

-- A damaged state counts as none, and so does a key of another type.
local _, state = pcall(cmsgpack.unpack, redis.pcall('GET', KEYS[1]) or '')
if type(state) ~= 'table' or not state.id then state = nil end
local strange = not state or state.id ~= request.state
local lost = strange and request.state ~= '' or not state and request.out
if not state then
  state = {
    id = time[1] .. '.' .. time[2] .. '.' .. request.replica,
    skew = -wall, last = 0, limit = request.limit,
    times = {}, counts = {}, takes = 0, lowered = 0, answered = 0,
    paused = 0, paced = 0, explained = 0, learned = 0, learnedAt = 0,
    tickets = 0, turns = { money = {}, read = {} }, replicas = {}
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
  return state.learned * 0.5 ^ ((now - state.learnedAt) / rules.learnedHalfLifeMs)
end

local function measure()
  capacity = math.max(1, math.floor(state.limit))
  window = 1000 + rules.jitterMs + learned()
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

-- Counts tokens as taken now.
local grantedAt = (math.floor(now / CELL_MS) + 1) * CELL_MS
local function count(tokens)
  if tokens < 1 then return end
  if times[#times] ~= grantedAt then
    times[#times + 1] = grantedAt
    counts[#times] = 0
  end
  counts[#times] = counts[#times] + tokens
  size = size + tokens
end

-- Takes off tokens that were used elsewhere.
local function lower(tokens)
  count(tokens)
  state.lowered = state.lowered + math.max(0, tokens)
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
  -- A higher limit brings no tokens at once: they come at the new rate.
  lower(capacity - size - tokens)
end

-- An answer was true when the upstream counted that call, so it is compared with what was left
-- right after its take.
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
    state.learned = math.min(rules.maxLearnedMs, math.max(rules.jitterMs, 2 * learned()))
    state.learnedAt = now
    measure()
  end
  -- Calls already in flight meet the same shortage: their rejections show nothing new.
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
local own = state.replicas[request.replica] or { counted = request.counted }
own.seen = now

-- Reports ----------------------------------------------------------------------------------------

-- The state that counted the takes is gone: assume that all tokens are taken.
if lost then lower(capacity - size) end

-- A replica that loses Redis starts its own budget without tokens. So another replica that asked
-- within the last window has used none of it, and one that was silent for longer at most its share.
if request.out then
  lower(request.out)
  local share = math.max(1, math.floor(state.limit * rules.fallbackShare / replicaCount))
  for _, replica in pairs(replicas) do
    if now - math.max(replica.seen, replica.aside or 0) > window then
      replica.aside = now
      lower(share)
    end
  end
end

-- A server that was promoted may lack the newest takes.
local missing = math.max(0, request.counted - own.counted)
own.counted = own.counted + missing
lower(math.min(missing, capacity))
local answer, rejected = request.answer, request.rejected
if strange then
  -- Takes of another state have no meaning here.
  if rejected then rejected.order = 0 end
  if answer then answer.order = nil end
end
if answer and answer.order then fold(answer)
elseif answer and answer.limit then setLimit(answer.limit) end
if rejected then reject(rejected) end

-- Turns ------------------------------------------------------------------------------------------

-- Waiting calls are served in turns (round robin) at three levels: groups take turns (each service,
-- and all customers together), within a group its callers, and within a caller the replicas where its
-- calls wait. Each of these is a node. The next turn goes to the node with the lowest ticket, which
-- then takes a new one and comes last, as does a node that joins. A node that leaves is forgotten by
-- the next request, so that turns cannot be saved up. A turn is one token, or at high rates as many
-- as come back in MIN_PAUSE_MS.
--
-- An example, with turns of one token. The services A (3 calls) and B (1 call) wait, then the
-- customers x and y (2 calls each), who form one group, C. They are served in this order:
--
--   A  B (its last)  C: x  A  C: y  A (its last)  C: x (his last)  C: y (her last)

local turn = math.max(1, math.ceil(MIN_PAUSE_MS / interval))

local function inLine(replica)
  return replica.due and now <= replica.due + LATE_MS
end

local function newTicket()
  state.tickets = state.tickets + 1
  return state.tickets
end

-- All calls that wait in a line.
local function lineOf(name)
  local line = {
    name = name, nodes = {}, own = {}, elsewhere = 0, replicas = 1, unmet = 0, granted = {}
  }
  local known = state.turns[name]
  local function add(id, caller, calls, ticket)
    local group = string.sub(caller, 1, 2) == 'c:' and 'c:' or caller
    local tickets = { known[group], known[caller], ticket }
    local node = line
    for level, key in ipairs({ group, caller, id }) do
      local nodes = node.nodes
      node = nodes[key]
      if not node then
        node = { left = 0, nodes = {}, ticket = tickets[level] or newTicket() }
        node.next = node.ticket
        nodes[key] = node
      end
      node.left = node.left + calls
    end
    return node
  end
  for id, replica in pairs(replicas) do
    if inLine(replica) then
      for caller, place in pairs(replica.callers[name]) do
        add(id, caller, place[1], place[2])
        line.elsewhere = line.elsewhere + place[1]
      end
      if next(replica.callers[name]) then line.replicas = line.replicas + 1 end
    end
  end
  local places = inLine(own) and own.callers[name] or {}
  for caller, calls in pairs(request.wants[name]) do
    local leaf = add(request.replica, caller, calls, (places[caller] or {})[2])
    leaf.caller, line.own[caller] = caller, leaf
    line.unmet = line.unmet + calls
  end
  line.paced = line.elsewhere > 0 or next(places) ~= nil
  return line
end

-- The node that gets the next token.
local function nextOf(nodes)
  local first
  for _, node in pairs(nodes) do
    if node.left > 0 and (not first or node.next < first.next) then first = node end
  end
  return first
end

-- Passes the next tokens out in turns: those that are free, which calls here are granted, and more,
-- until one would go to a call here. Tokens for calls elsewhere are only kept for these, whose nodes
-- keep their tickets. Returns how many these are; `math.huge` if they are more than will be free at
-- the end of the longest pause.
local function passOut(line, free)
  local passed, kept = 0, 0
  local most = capacity - countSince(now + MAX_PAUSE_MS - window)
  while line.unmet > 0 do
    if passed > most then return math.huge end
    local group = nextOf(line.nodes)
    local node = nextOf(group.nodes)
    local leaf = nextOf(node.nodes)
    local caller = leaf.caller
    if caller and passed >= free then break end
    local tokens = math.min(turn, leaf.left)
    if passed < free then tokens = math.min(tokens, free - passed) end
    local ticket = newTicket()
    for _, one in ipairs({ group, node, leaf }) do
      one.left, one.next = one.left - tokens, ticket
      if caller then one.ticket = ticket end
    end
    passed = passed + tokens
    if caller then
      line.granted[caller] = (line.granted[caller] or 0) + tokens
      line.unmet = line.unmet - tokens
    else
      kept = kept + tokens
    end
  end
  return kept
end

local money, read = lineOf('money'), lineOf('read')

-- Waiting calls are served no faster than the limit, so that one burst does not become another.
-- Reads that wait hold up no money, which may take the reserve at once.
read.paced = money.paced or read.paced

-- A request that is late by up to `catchUpMs` is made up for.
local pacedFrom = now - state.paced > rules.catchUpMs and now or state.paced

local function free(line)
  if now < state.paused then return 0 end
  local tokens = capacity - size
  if line == read then
    tokens = math.min(tokens, forReads - countSince(now - forReads * interval))
  end
  if line.paced then
    tokens = math.min(tokens, now < pacedFrom and 0 or math.floor((now - pacedFrom) / interval) + 1)
  end
  return math.max(0, tokens)
end

local orderBefore, outBefore, loweredBefore = state.takes, size, state.lowered

-- Grants free tokens to a line's callers, after `first` of them that are left for others.
local function grant(line, first)
  local wanted = line.unmet
  line.kept = passOut(line, free(line) - first)
  local got = wanted - line.unmet
  count(got)
  state.takes, own.counted = state.takes + got, own.counted + got
  if line.paced and got > 0 then
    pacedFrom = pacedFrom + got * interval
    state.paced = pacedFrom
  end
end

grant(money, 0)
grant(read, money.elsewhere + money.unmet)

-- When one more token is free after `tokens` others.
local function nextAt(line, tokens)
  local within = math.min(tokens, capacity - 1)
  local at = latest(capacity - within) + window + (tokens - within) * interval
  if line == read then
    within = math.min(tokens, forReads - 1)
    at = math.max(at, latest(forReads - within) + (forReads + tokens - within) * interval)
  end
  return math.max(at, state.paused, state.paced + tokens * interval)
end

local againMs
if money.unmet + read.unmet > 0 then
  local line, ahead = money, money.kept
  if money.unmet == 0 then line, ahead = read, money.elsewhere + read.kept end
  local waitMs = ahead < math.huge and math.ceil(nextAt(line, ahead) - now) or MAX_PAUSE_MS
  againMs = math.max(MIN_PAUSE_MS, math.min(waitMs, MAX_PAUSE_MS))
end

-- The end ----------------------------------------------------------------------------------------

-- Keeps the places of this replica's callers, and the tickets of all callers and groups that waited.
own.callers, own.due, state.turns = {}, againMs and now + againMs, {}
for _, line in ipairs({ money, read }) do
  local places, tickets = {}, {}
  for caller, leaf in pairs(line.own) do
    if leaf.left > 0 then places[caller] = { leaf.left, leaf.ticket } end
  end
  for key, group in pairs(line.nodes) do
    tickets[key] = group.ticket
    for caller, node in pairs(group.nodes) do tickets[caller] = node.ticket end
  end
  own.callers[line.name], state.turns[line.name] = places, tickets
end

replicas[request.replica] = own
state.replicas = replicas
state.times, state.counts = times, counts
state.last = now
redis.call('SET', KEYS[1], cmsgpack.pack(state), 'EX', KEEP_S)

local fullAt = math.max(now, state.paused, latest(1) + window)
local function lineReply(line)
  return {
    granted = line.granted, unmet = line.unmet,
    nextMs = line.unmet > 0 and nextAt(line, line == read and money.elsewhere or 0) - now or 0,
    -- Each replica in line gets as much as this one, or as much as it wants.
    perOwn = math.min(line.replicas, 1 + line.elsewhere / math.max(1, line.unmet))
  }
end
return cjson.encode({
  id = state.id, money = lineReply(money), read = lineReply(read),
  order = orderBefore, out = outBefore, lowered = loweredBefore,
  counted = own.counted, againMs = againMs, intervalMs = interval,
  limit = capacity, remaining = now < state.paused and 0 or math.max(0, capacity - size),
  fullMs = fullAt - now, replicas = replicaCount
})
