--! fragment rows
--! uses starts mirror tallies indexes
--! state rows={} order={} said={} stamp=false stirred=false called={}
--! record run rid incarnation tenant kind digest born status generation seq submitted entries
--! record run last_nonce=false last_generation=0 last_digest='' armed=0 live={}
--! record run nonce=false due=false slot=false tries=0 boxn=0 unread=0 box={} consumed={} consumed_beside=false
--! record run | retry=false parked=false ended=false blocked=false blocked_reason='' reopened=false cancel=false lost=0
--! record run frames_beside=false queue='default' priority=0 not_before=false business_key='' tags={} hidden=false
--! record run failures=0 wakeups=0 lost_worker=false
--! record wait id node address arm low since type='' key=false kind='event' deadline=false
--! record wait | state='open' by=false task=false by_filter=false reuse=false cand=false child=false
-- Headers of the runs this step touches, and every index that follows from them: written once, by flush.
-- called: held runs whose holder is to look at them now.

local TERMINAL = {completed = true, error = true, cancelled = true}
local DEFAULT_TENANT = 'default'
local NO_INPUT = '{}'
local MEMBER = '%013d|%s'
local DEFERRED = {}

-- An index member: runs of one due time go in the order of their numbers.
local function member_of(run)
  return string.format(MEMBER, run.rid, run.id)
end

local function id_of(member)
  return string.sub(member, 15)
end

-- The index of a run that is due then, held or not.
local function place_of(run, due, nonce)
  if not due then return false end
  if nonce then return leases_key(run.queue) end
  return due_key(run.queue, run.priority)
end

local function remember(run)
  local was = run.was
  was.due, was.nonce, was.status, was.ended = run.due, run.nonce, run.status, run.ended
end

local function move(run, was)
  local member = member_of(run)
  local from, to = place_of(run, was.due, was.nonce), place_of(run, run.due, run.nonce)
  if from and from ~= to then put_member(from, member, false) end
  if to and (from ~= to or was.due ~= run.due) then
    put_member(to, member, run.due)
    if not run.nonce or run.due <= now then stirred = true end
  end
  if was.nonce ~= run.nonce then
    if was.nonce then put_member(held_key(), was.nonce .. '|' .. run.id, false) end
    if run.nonce then put_member(held_key(), run.nonce .. '|' .. run.id, 0) end
  end
end

-- The encoder writes fourteen digits: a later time than that is kept as text.
local function written_time(at)
  return at and at >= 1e14 and string.format('%d', at) or at
end

local TIMES = {'due', 'retry', 'not_before'}

-- A header has the waits that are not closed in it, as long as they are few; of others it has the ids.
local function read_header(raw)
  local run = run_of(cjson.decode(raw))
  run.waits, run.shut = {}, 0
  if run.tenant == '' then run.tenant = DEFAULT_TENANT end
  for _, name in ipairs(TIMES) do
    if type(run[name]) == 'string' then run[name] = tonumber(run[name]) end
  end
  for i, entry in ipairs(run.live) do
    if type(entry) == 'table' then
      local wait = wait_of(entry)
      wait.was, wait.within = wait.state, true
      run.waits[wait.id], run.live[i] = wait, wait.id
    end
  end
  return run
end

-- Ids of the waits that are not closed, in the order they were armed. However many a step closes, that is one pass:
-- until then shut counts those that are still among them.
local function live_ids(run)
  if run.shut > 0 then
    local live = {}
    for _, id in ipairs(run.live) do
      local wait = run.waits[id]
      if not wait or wait.state ~= 'closed' then live[#live + 1] = id end
    end
    run.live, run.shut = live, 0
  end
  return run.live
end

local function live_values(run)
  local values = {}
  for i, id in ipairs(run.live) do
    local wait = run.waits[id]
    values[i] = wait and wait.within and values_of_wait(wait) or id
  end
  return values
end

local function header_text(run)
  local live = live_ids(run)
  local values, at = values_of_run(run), AT.run
  if run.tenant == DEFAULT_TENANT then values[at.tenant] = '' end
  if #live > 0 then values[at.live] = live_values(run) end
  for _, name in ipairs(TIMES) do
    local place = at[name]
    if values[place] then values[place] = written_time(values[place]) end
  end
  return cjson.encode(values)
end

-- The run of that id, or of that other name; false when there is none.
local function find_run(id)
  local run = rows[id]
  if run ~= nil then return run end
  local raw = redis.call('HGET', run_key(id), 'h')
  if not raw then
    local other = redis.call('GET', name_key(id))
    run = other and find_run(other) or false
    rows[id] = run
    return run
  end
  run = read_header(raw)
  run.id, run.raw = id, raw
  run.was = {due = run.due, nonce = run.nonce, status = run.status, ended = run.ended}
  rows[id] = run
  order[#order + 1] = run
  if run.status == 'suspended' and not run.nonce then DEFERRED.decide(run) end
  return run
end

-- Enough of it to tell one start from another.
local function kept_digest(digest)
  return string.sub(digest, 1, 32)
end

-- start: id, incarnation, facts (JSON of our own making), input, parent (JSON or '').
local function add_run(start)
  local facts = cjson.decode(start.facts)
  local rid = redis.call('HINCRBY', counters_key(), 'rid', 1)
  local grave = redis.call('HGET', grave_key(start.id), 'generation')
  local run = {
    id = start.id, raw = '', rid = rid, incarnation = start.incarnation, tenant = facts.tenant,
    kind = keep_kind(facts), digest = kept_digest(facts.digest),
    queue = facts.queue, priority = facts.priority, born = tonumber(redis.call('HGET', counters_key(), 'event') or 0),
    status = 'queued', nonce = false, due = false, slot = false, generation = tonumber(grave or 0), cancel = false,
    parked = false, blocked = false, ended = false, lost = 0, tries = 0, seq = 0, last_nonce = false,
    last_generation = 0, last_digest = '', boxn = 0, unread = 0, armed = 0, entries = 0, retry = false,
    blocked_reason = '', reopened = false, submitted = now, failures = 0, wakeups = 0, lost_worker = false,
    box = {}, live = {}, shut = 0, waits = {}, consumed = {}, consumed_beside = false, frames_beside = false,
    not_before = type(facts.not_before) == 'number' and facts.not_before, business_key = facts.business_key,
    tags = facts.tags, hidden = not (facts.mirrored and LIMITS.mirrored), shared = facts,
    was = {due = false, nonce = false, status = false, ended = false},
  }
  if start.input ~= NO_INPUT then redis.call('HSET', run_key(run.id), 'in', start.input) end
  if start.parent ~= '' then redis.call('HSET', run_key(run.id), 'p', start.parent) end
  redis.call('ZADD', by_flow_key(facts.flow_id), rid, run.id)
  redis.call('SADD', queues_key(), run.queue)
  if run.priority ~= 0 then redis.call('ZADD', priorities_key(run.queue), run.priority, run.priority) end
  if run.tenant ~= DEFAULT_TENANT then redis.call('ZADD', by_tenant_key(run.tenant), rid, run.id) end
  if facts.business_key ~= '' then redis.call('ZADD', by_key_key(facts.business_key), rid, run.id) end
  for _, tag in ipairs(facts.tags) do redis.call('ZADD', by_tag_key(tag), rid, run.id) end
  if string.find(run.id, '.', 1, true) then redis.call('ZADD', kin_key(), 0, run.id) end
  rows[run.id] = run
  order[#order + 1] = run
  return run
end

local function say(run, entry)
  run.entries = run.entries + 1
  local entries = said[run.id]
  if not entries then
    entries = {}
    said[run.id] = entries
  end
  stamp = stamp or string.format('%d|', now)
  entries[#entries + 1] = stamp .. entry
end

local function save(run)
  local raw = header_text(run)
  if raw == run.raw then return end
  local was = run.was
  if run.deferred then
    put_member(deferred_key(), run.id, false)
    run.deferred = nil
  end
  if run.frames then
    redis.call('HSET', run_key(run.id), 'h', raw, 'f', run.frames)
    run.frames = nil
  else
    redis.call('HSET', run_key(run.id), 'h', raw)
  end
  if was.due ~= run.due or was.nonce ~= run.nonce then move(run, was) end
  if was.status ~= run.status then
    if was.status then put_member(by_status_key(was.status), run.id, false) end
    put_member(by_status_key(run.status), run.id, run.rid)
  end
  if not run.hidden then
    if was.status ~= run.status then mirror_row(run) end
    mirror_claim(run)
  end
  if was.ended ~= run.ended then put_member(ended_key(), run.id, run.ended) end
  run.raw = raw
  remember(run)
end

-- Beyond the bound the oldest entries go; the header counts all there were.
local function append(id, entries)
  local length = in_parts('RPUSH', log_key(id), entries)
  if length > LIMITS.history then
    redis.call('LTRIM', log_key(id), -LIMITS.history, -1)
    tally('history_trimmed', length - LIMITS.history)
  end
end

-- Write headers and history; say that something may be due.
local function flush()
  for i = 1, #order do
    local run = order[i]
    if not run.gone then save(run) end
  end
  write_indexes()
  for id, entries in pairs(said) do append(id, entries) end
  said = {}
  if stirred or #called > 0 then
    -- A hint that cannot be sent is a hint that is missed.
    redis.pcall('PUBLISH', hints_key(), table.concat(called, '\n'))
    stirred, called = false, {}
  end
end
