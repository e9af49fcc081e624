--! fragment match
--! uses rows quota
--! state newest={}
-- Waits, the mailbox, and the one matching step between the event log and a wait.

local TASK_CLOSED = 'closed'
local WITHIN_MAX = 4
local CONSUMED_MAX = 8

local function text(value)
  return cjson.encode(value)
end

-- One wait, loaded once; false when the run never had it.
local function find_wait(run, id)
  local wait = run.waits[id]
  if wait == nil then
    local raw = run.armed > 0 and redis.call('HGET', waits_key(run.id), id)
    wait = raw and wait_of(cjson.decode(raw)) or false
    if wait then wait.was = wait.state end
    run.waits[id] = wait
  end
  return wait
end

-- Waits that are not closed, in the order they were armed.
local function live_waits(run)
  local found = {}
  for _, id in ipairs(live_ids(run)) do found[#found + 1] = find_wait(run, id) end
  return found
end

local function listens_at(wait)
  return wait.key and waiting_keyed_key(wait.type, wait.key) or waiting_key(wait.type)
end

local function listening_member(run, wait)
  return cjson.encode({run.id, wait.id})
end

local function save_wait(run, wait)
  if wait.state == 'closed' then wait.within = false end
  if not wait.within then redis.call('HSET', waits_key(run.id), wait.id, cjson.encode(values_of_wait(wait))) end
  if wait.kind == 'event' then
    put_member(listens_at(wait), listening_member(run, wait), wait.state == 'open' and wait.arm)
  end
  if wait.was ~= wait.state then
    if not run.hidden then mirror_wait(run, wait) end
    if wait.state == 'closed' then run.shut = run.shut + 1 end
    wait.was = wait.state
  end
end

local function add_wait(run, wait)
  local live = live_ids(run)
  run.waits[wait.id] = wait
  wait.within = #live < WITHIN_MAX
  run.armed = run.armed + 1
  live[#live + 1] = wait.id
  save_wait(run, wait)
end

local function drop_from_inboxes(task, approvers)
  redis.call('ZREM', tasks_key(), task)
  for _, actor in ipairs(approvers) do redis.call('ZREM', tasks_of_key(actor), task) end
end

-- A person is asked no longer.
local function close_task(wait, status)
  if not wait.task then return end
  local found = redis.call('HMGET', task_key(wait.task), 'status', 'approvers')
  if found[1] == 'open' then
    redis.call('HSET', task_key(wait.task), 'status', status or TASK_CLOSED)
    drop_from_inboxes(wait.task, cjson.decode(found[2]))
  end
end

local function by_facts(by)
  local facts = '{"kind":' .. text(by.kind)
  if (by.event or 0) ~= 0 then facts = facts .. ',"event":' .. string.format('%d', by.event) end
  if (by.actor or '') ~= '' then facts = facts .. ',"actor":' .. text(by.actor) end
  return facts .. '}'
end

-- What the holder is to read: a head line of ours, then the data as it came. An event's data is in the event log.
local function post(run, kind, wait, data, event)
  run.boxn = run.boxn + 1
  run.unread = run.unread + 1
  run.box[#run.box + 1] = {run.boxn, kind, wait.id, event}
  if event == 0 then redis.call('HSET', run_key(run.id), 'm:' .. run.boxn, data) end
  if run.nonce then called[#called + 1] = run.id end
  runnable(run, RESUME)
end

-- Take the entries for which drop(entry) is true out of the mailbox.
local function unpost(run, drop)
  local kept, taken = {}, {}
  for _, mail in ipairs(run.box) do
    if drop(mail) then
      taken[#taken + 1] = mail
      if mail[4] == 0 then redis.call('HDEL', run_key(run.id), 'm:' .. mail[1]) end
    else
      kept[#kept + 1] = mail
    end
  end
  run.box, run.unread = kept, #kept
  return taken
end

local function mailbox(run)
  local found = {}
  for i, mail in ipairs(run.box) do
    local data
    if mail[4] == 0 then
      data = redis.call('HGET', run_key(run.id), 'm:' .. mail[1])
    else
      data = redis.call('HGET', event_key(mail[4]), 'data')
    end
    found[i] = {mail[1], mail[2], mail[3], mail[4], data}
  end
  return found
end

-- The wait is answered: into the mailbox, and the run becomes due.
local function resolve(run, wait, by, data)
  wait.state, wait.by = 'resolved', by
  save_wait(run, wait)
  close_task(wait)
  say(run, '{"event":"wait_resolved","wait":' .. text(wait.id) .. ',"node":' .. text(wait.address) .. ',"by":'
    .. by_facts(by) .. '}')
  post(run, 'wake', wait, data, by.event or 0)
end

-- How often the run took an event or has it on offer; nil for one that is free. The first few are in the header.
local function consumed_at(run, number)
  for i = 1, #run.consumed, 2 do
    if run.consumed[i] == number then return i end
  end
  return nil
end

local function is_consumed(run, number)
  if consumed_at(run, number) then return true end
  return run.consumed_beside and redis.call('HEXISTS', consumed_key(run.id), number) == 1
end

-- Count an event up or down; answers how often it is consumed now.
local function consume(run, number, by)
  local at = consumed_at(run, number)
  if not at and (run.consumed_beside or #run.consumed >= 2 * CONSUMED_MAX) then
    run.consumed_beside = true
    return redis.call('HINCRBY', consumed_key(run.id), number, by)
  end
  at = at or #run.consumed + 1
  run.consumed[at], run.consumed[at + 1] = number, (run.consumed[at + 1] or 0) + by
  return run.consumed[at + 1]
end

local function set_free(run, number)
  local at = consumed_at(run, number)
  if at then
    table.remove(run.consumed, at + 1)
    table.remove(run.consumed, at)
  else
    redis.call('HDEL', consumed_key(run.id), number)
  end
end

-- Of an event that is just given to many waits it is known what comes before it in its log.
local function note_newest(log, number)
  local before = redis.call('ZREVRANGEBYSCORE', log, string.format('(%d', number), '-inf', 'LIMIT', 0, 1)[1]
  newest[log] = {number = number, before = tonumber(before) or 0}
end

-- The lowest event of the wait's window that this run has not consumed.
local function lowest(run, wait)
  local log = wait.key and keyed_key(wait.type, wait.key) or typed_key(wait.type)
  local last, from = newest[log], wait.low
  if last and from >= last.before and from < last.number and (wait.reuse or not is_consumed(run, last.number)) then
    return last.number
  end
  while true do
    local numbers = redis.call('ZRANGEBYSCORE', log, string.format('(%d', from), '+inf', 'LIMIT', 0, 16)
    for _, number in ipairs(numbers) do
      local event = tonumber(number)
      if wait.reuse or not is_consumed(run, event) then return event end
    end
    if #numbers < 16 then return nil end
    from = tonumber(numbers[16])
  end
end

local function is_for(wait, number)
  local row = redis.call('HMGET', event_key(number), 'type', 'key')
  return row[1] == wait.type and (not wait.key or row[2] == wait.key)
end

-- Whether an event of the wait's window, lower than that one, is on offer to another wait: refused there, it is for
-- this one. accepted: ids of waits that take what they are offered in this very step.
local function awaits_verdict(run, wait, below, accepted)
  if wait.reuse then return false end
  for _, mail in ipairs(run.box) do
    local number = mail[4]
    if mail[2] == 'candidate' and mail[3] ~= wait.id and not accepted[mail[3]] and number > wait.low and number < below
      and find_wait(run, mail[3]).cand == number and is_for(wait, number) then
      return true
    end
  end
  return false
end

local NONE = {}

-- Give an open event wait its event; one whose filter the machine judges gets it as a candidate, one at a time and in
-- their order: what is on offer elsewhere is judged there first.
local function match(run, wait, accepted)
  if wait.kind ~= 'event' or wait.state ~= 'open' or wait.cand or run.cancel then return nil end
  local number = lowest(run, wait)
  if not number then return nil end
  if wait.by_filter and awaits_verdict(run, wait, number, accepted or NONE) then return nil end
  consume(run, number, 1)
  if wait.by_filter then
    wait.cand = number
    save_wait(run, wait)
    post(run, 'candidate', wait, '', number)
    return 'offered'
  end
  resolve(run, wait, {kind = 'event', event = number}, '')
  return 'resolved'
end

-- A candidate is refused or overtaken: the event is free for the run's other waits, the window moves past it.
local function withdraw(run, wait, refused)
  local number = wait.cand
  wait.cand = false
  if refused then wait.low = math.max(wait.low, number) end
  save_wait(run, wait)
  -- Waits that may reuse events share them: what another wait took or is offered stays consumed.
  if consume(run, number, -1) <= 0 then set_free(run, number) end
  unpost(run, function(mail) return mail[2] == 'candidate' and mail[3] == wait.id end)
  for _, other in ipairs(live_waits(run)) do
    if other ~= wait or refused then match(run, other) end
  end
end
