--! verb claim
--! class allow-oom
--! uses rows quota match finish pulse outbox headers flagging
--! args nonce n only alone queues* lacks*
-- Carry the outbox on, then take due runs. The same nonce again is a resend: it gets what it holds, renewed.

local LACKING_MAX = 100
local SET_BACK = 1000
local WINDOW = 200
local WORKER_LOST = '{"kind":"node_error","code":-500,"message":'
  .. '"every process that took this run was lost before it made progress","error_type":"worker_lost","path":[]}'

local lacking = {}
for _, closure in ipairs(args.lacks) do lacking[closure] = true end

local function held_runs(nonce)
  local found = {}
  local from, to = '[' .. nonce .. '|', '(' .. nonce .. '}'
  for _, member in ipairs(redis.call('ZRANGEBYLEX', held_key(), from, to)) do
    found[#found + 1] = find_run(string.sub(member, #nonce + 2))
  end
  table.sort(found, function(a, b) return a.rid < b.rid end)
  return found
end

-- Of what is due the index says enough to choose: {rid, id, priority, due, held}. A header is read when it is its turn.
local function add_members(found, place, priority, limit)
  local members = redis.call('ZRANGEBYSCORE', place, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #members, 2 do
    found[#found + 1] = {
      rid = tonumber(string.sub(members[i], 1, 13)), id = id_of(members[i]), priority = priority,
      due = tonumber(members[i + 1]), held = false,
    }
  end
  return #members / 2
end

local function add_run(found, run)
  found[#found + 1] = {
    rid = run.rid, id = run.id, priority = run.priority, due = run.due, held = run.nonce and true or false,
  }
end

-- A run that made no progress since it was claimed goes only to an idle process. Others do not look at all of them:
-- there may be thousands. What they look at is another part every second.
local function add_leases(found, place, held, limit)
  local from = 0
  if held == 'proven' then
    local count = redis.call('ZCOUNT', place, '-inf', now)
    if count > WINDOW then from = math.floor(now / 1000) * WINDOW % count end
    limit = WINDOW
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', place, '-inf', now, 'LIMIT', from, limit)) do
    local run = find_run(id_of(member))
    if held == 'all' or run.tries == 0 then add_run(found, run) end
  end
end

local function priorities_of(queue)
  local found, zero = {}, false
  for _, name in ipairs(redis.call('ZREVRANGE', priorities_key(queue), 0, -1)) do
    local priority = tonumber(name)
    if priority < 0 and not zero then
      found[#found + 1] = 0
      zero = true
    end
    found[#found + 1] = priority
  end
  if not zero then found[#found + 1] = 0 end
  return found
end

local function due_in(queue, held, limit, found)
  local left = limit
  for _, priority in ipairs(priorities_of(queue)) do
    if left <= 0 then break end
    left = left - add_members(found, due_key(queue, priority), priority, left)
  end
  if held ~= 'none' then add_leases(found, leases_key(queue), held, limit) end
end

local function due_of(only, held, found)
  local ids = redis.call('ZRANGEBYLEX', kin_key(), '[' .. only .. '.', '(' .. only .. '/')
  ids[#ids + 1] = only
  for _, id in ipairs(ids) do
    local run = find_run(id)
    local fits = run and (not run.nonce or held == 'all' or (held == 'proven' and run.tries == 0))
    if fits and run.id == id and run.due and run.due <= now then add_run(found, run) end
  end
end

local function before(a, b)
  if a.priority ~= b.priority then return a.priority > b.priority end
  if a.due ~= b.due then return a.due < b.due end
  return a.rid < b.rid
end

-- Runs due now by priority, then due time. held: none, proven or all of those whose lease is over.
local function due(held, limit)
  flush()
  local found = {}
  if args.only ~= '' then
    due_of(args.only, held, found)
  else
    for _, queue in ipairs(args.queues) do due_in(queue, held, limit, found) end
  end
  table.sort(found, before)
  local cut = {}
  for i = 1, math.min(limit, #found) do cut[i] = found[i] end
  return cut
end

-- Half of the places are kept for runs that nobody holds when many leases ran out at once.
local function candidates(n, held, passed)
  local limit = 2 * n + passed
  local all = due(held, limit)
  local lost, unheld = {}, {}
  for _, entry in ipairs(all) do
    local list = entry.held and lost or unheld
    list[#list + 1] = entry
  end
  if #lost <= math.floor(n / 2) or held == 'none' then return all end
  if #all == limit and #unheld < n then unheld = due('none', limit) end
  local share = math.max(n - #unheld, math.floor((n + 1) / 2))
  local mixed = {}
  for i = 1, math.min(share, #lost) do mixed[#mixed + 1] = lost[i] end
  for _, entry in ipairs(unheld) do mixed[#mixed + 1] = entry end
  for i = share + 1, #lost do mixed[#mixed + 1] = lost[i] end
  return mixed
end

local function set_back(run)
  local closure = next(lacking) and kind_of_run(run).closure
  if not closure or not lacking[closure] then return false end
  run.due = now + SET_BACK
  run.blocked_reason = 'a worker could not load the definition ' .. closure:sub(1, 12)
  return true
end

-- From its second fruitless claim on a run may only go, alone, to a process that holds nothing.
local function fits(run, taken)
  if run.tries >= 1 and (#taken > 0 or args.alone == '') then return false end
  return not next(lacking) or not lacking[kind_of_run(run).closure]
end

local function take(run)
  local takeover = run.nonce and 1 or 0
  if run.cancel or take_flag(run) then
    finish(run, {status = 'cancelled'})
    return false
  end
  if run.tries >= LIMITS.tries_max or run.lost + takeover > LIMITS.lost_max then
    finish(run, {status = 'error', failure = WORKER_LOST, lost_worker = true})
    return false
  end
  if not run.slot and not has_room(run.tenant) then
    runnable(run, run.status == 'queued' and START or RESUME)
    return false
  end
  run.generation = run.generation + 1
  run.nonce, run.status = args.nonce, 'running'
  set_slot(run, true)
  run.due = now + LIMITS.lease
  run.tries = run.tries + 1
  run.lost = run.lost + takeover
  run.taken_over = takeover
  run.blocked_reason = ''
  say(run, '{"event":"claimed","holder":' .. text(string.match(args.nonce, '^(.*)%.') or '') .. ',"generation":'
    .. string.format('%d', run.generation) .. (takeover == 1 and ',"takeover":true}' or '}'))
  return true
end

local function take_due(n, takeovers)
  local taken, passed, count, lacks = {}, {}, 0, 0
  while #taken < n do
    local fresh, held = {}, 'none'
    if takeovers then held = (args.alone ~= '' and #taken == 0) and 'all' or 'proven' end
    for _, entry in ipairs(candidates(n, held, count)) do
      if not passed[entry.rid] then fresh[#fresh + 1] = entry end
    end
    if #fresh == 0 then break end
    for _, entry in ipairs(fresh) do
      if #taken == n or (#taken > 0 and taken[1].tries > 1) then return taken end
      local run = find_run(entry.id)
      if lacks < LACKING_MAX and set_back(run) then
        lacks = lacks + 1
      elseif fits(run, taken) and take(run) then
        taken[#taken + 1] = run
      end
      passed[entry.rid] = true
      count = count + 1
    end
    if lacks >= LACKING_MAX then break end
  end
  return taken
end

local takeovers = contact() <= now
pump(LIMITS.outbox_per_claim, LIMITS.chunk)
flush()
local held = held_runs(args.nonce)
for _, run in ipairs(held) do run.due = now + LIMITS.lease end
if #held == 0 then held = take_due(tonumber(args.n), takeovers) end
flush()
local answers = {}
for i, run in ipairs(held) do answers[i] = claimed(run) end
return answers
