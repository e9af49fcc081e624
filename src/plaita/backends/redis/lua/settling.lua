--! fragment settling
--! uses rows quota match finish headers framing
-- The only write of a holder. Everything is validated first; then the step is written as one.

-- Whether the answer came after what the holder has read: then this is not the answer it means.
local function is_unread(run, wait, ack)
  for _, mail in ipairs(run.box) do
    if mail[1] > ack and mail[2] == 'wake' and mail[3] == wait.id then return true end
  end
  return false
end

-- Candidates that were read and that no close of the step takes are refused.
local function refuse_read(run, ack, accepted)
  local read = {}
  for _, mail in ipairs(run.box) do
    if mail[1] <= ack and mail[2] == 'candidate' and accepted[mail[3]] ~= mail[4] then read[#read + 1] = mail end
  end
  for _, mail in ipairs(read) do
    local wait = find_wait(run, mail[3])
    if wait.cand == mail[4] then withdraw(run, wait, true) end
  end
end

-- Compare-and-set of one wait. An unanswered close first looks whether an event was published for it, and whether one
-- is still on offer that may become its own.
local function may_close(run, closing, ack, accepted)
  local wait = find_wait(run, closing.wait)
  if closing.why == 'read' then return wait.state == 'resolved' and not is_unread(run, wait, ack) end
  if closing.why == 'event' then return wait.state == 'open' and wait.cand == closing.event end
  refuse_read(run, ack, accepted)
  match(run, wait, accepted)
  return wait.state == 'open' and not wait.cand and not awaits_verdict(run, wait, math.huge, accepted)
end

-- The events that closes of the step take, by wait.
local function accepted_by(closes)
  local accepted = {}
  for _, closing in ipairs(closes) do
    if closing.why == 'event' then accepted[closing.wait] = closing.event end
  end
  return accepted
end

-- What only a holder's mistake can cause is refused before anything is written.
local function mistake(run, step)
  for _, closing in ipairs(step.closes) do
    if not find_wait(run, closing.wait) then return 'run ' .. run.id .. ' has no wait ' .. closing.wait end
  end
  for _, arm in ipairs(step.arms) do
    if find_wait(run, arm.id) then
      return 'run ' .. run.id .. ' already had a wait ' .. arm.id .. '; a wait id is never used again'
    end
  end
  if step.kind == 'park' and step.a == '' and #step.arms == 0 then
    local closed = {}
    for _, closing in ipairs(step.closes) do closed[closing.wait] = true end
    for _, wait in ipairs(live_waits(run)) do
      if wait.state == 'open' and not closed[wait.id] then return nil end
    end
    for _, mail in ipairs(run.box) do
      if mail[1] > step.ack then return nil end
    end
    return 'run ' .. run.id .. ' parks without a timer and without an open wait: nobody would look'
  end
  return nil
end

-- Entries up to ack are read. What was taken is on offer no more: others may have waited for that verdict.
local function read_mailbox(run, ack, accepted)
  refuse_read(run, ack, accepted)
  unpost(run, function(mail) return mail[1] <= ack end)
  if next(accepted) then
    for _, wait in ipairs(live_waits(run)) do match(run, wait) end
  end
end

local function open_task(run, arm)
  local number = redis.call('HINCRBY', counters_key(), 'task', 1)
  redis.call('HSET', task_key(arm.task), 'run', run.id, 'wait', arm.id, 'flow', kind_of_run(run).flow_id,
    'node', arm.node, 'spec', arm.spec, 'status', 'open', 'version', 0, 'created', string.format('%d', now),
    'approvers', arm.approvers, 'number', number)
  if arm.deadline then redis.call('HSET', task_key(arm.task), 'deadline', string.format('%d', arm.deadline)) end
  redis.call('ZADD', tasks_key(), number, arm.task)
  for _, actor in ipairs(cjson.decode(arm.approvers)) do redis.call('ZADD', tasks_of_key(actor), number, arm.task) end
end

local function arm_wait(run, arm)
  local number = redis.call('HINCRBY', counters_key(), 'event', 1)
  local wait = {
    id = arm.id, kind = arm.kind, node = arm.node, address = arm.address, type = arm.type, key = arm.key,
    by_filter = arm.by_filter, reuse = arm.reuse, arm = number, low = arm.key and run.born or number, since = now,
    deadline = written_time(arm.deadline), task = arm.task, child = false, state = 'open', by = false, cand = false,
    wanted = arm.wanted,
  }
  add_wait(run, wait)
  if arm.task then open_task(run, arm) end
  match(run, wait)
end

local function spawn_child(run, child)
  if child.wait then
    local wait = find_wait(run, child.wait)
    wait.child = child.id
    save_wait(run, wait)
  end
  -- The kind is kept for it: the run may be gone before the child is there.
  local kind = keep_kind(cjson.decode(child.facts))
  push_out({'spawn', run.id, run.incarnation, child.wait, child.id, child.incarnation, child.facts, child.digest, kind},
    child.input)
end

local function accept(run, step)
  run.seq = step.seq
  run.last_nonce, run.last_generation, run.last_digest = step.nonce, step.generation, step.digest
  if run.retry then run.retry = false end
  -- Given back without a change, by a process that could not load it, a reopened run is still to be reopened.
  if run.reopened then run.reopened = #step.put == 0 and #step.cut == 0 and step.kind ~= 'end' end
end

local function tell(run, step)
  for _, entry in ipairs(step.history) do say(run, entry) end
end

local function give_back(run)
  local waiting = false
  for _, wait in ipairs(live_waits(run)) do waiting = waiting or wait.state == 'open' end
  run.nonce = false
  run.status = waiting and 'suspended' or 'running'
  free(run)
end

-- What comes next, judged after everything else is written: a park with mail becomes a keep.
local function go_on(run, step)
  if step.kind == 'end' then
    finish(run, {status = step.a, output = step.b, failure = step.c, failed_node = step.failed_node})
  elseif step.kind == 'park' and run.unread == 0 then
    give_back(run)
    run.due, run.retry = tonumber(step.a) or false, tonumber(step.b) or false
  elseif step.kind == 'block' then
    give_back(run)
    run.due, run.blocked, run.blocked_reason = false, true, step.a
  elseif step.kind == 'hand_back' then
    run.nonce, run.due, run.tries = false, now, math.max(0, run.tries - 1)
  else
    return {'settled', condition(step.seq, true, run, mailbox(run))}
  end
  return {'settled', {step.seq, 0, 0, now, {}}}
end

local function with_cuts(run, step)
  local closes, named = {}, {}
  for _, closing in ipairs(step.closes) do
    closes[#closes + 1] = closing
    named[closing.wait] = true
  end
  for _, wait in ipairs(live_waits(run)) do
    if not named[wait.id] then closes[#closes + 1] = {wait = wait.id, why = 'cut', event = 0} end
  end
  return closes
end

local function refusal(run, step)
  local same = step.seq == run.seq and run.last_nonce == step.nonce and run.last_generation == step.generation
    and run.incarnation == step.incarnation
  if same then
    if run.last_digest ~= step.digest then return {'mismatch', step.seq} end
    local held = held_under(run, step.nonce, step.generation, step.incarnation)
    return {'dup', condition(step.seq, held, run, mailbox(run))}
  end
  if held_under(run, step.nonce, step.generation, step.incarnation) and run.status == 'running'
    and step.seq == run.seq + 1 then
    return nil
  end
  if run.nonce then return {'stale', run.seq, run.nonce, run.generation, run.incarnation} end
  return {'stale', run.seq}
end

local function closed_by(closing)
  if closing.why == 'read' then return false end
  if closing.why == 'event' then return {kind = 'event', event = closing.event} end
  return {kind = closing.why}
end

local function close_those(run, closes, cut)
  for _, closing in ipairs(closes) do
    if (closing.why == 'cut') == cut then close(run, find_wait(run, closing.wait), closed_by(closing)) end
  end
end

local function settle(run, step)
  local refused = refusal(run, step)
  if refused then return refused end
  if run.cancel then
    accept(run, step)
    tell(run, step)
    finish(run, {status = 'cancelled'})
    return {'settled', {step.seq, 0, 1, now, {}}}
  end
  local wrong = mistake(run, step)
  if wrong then return redis.error_reply('MISTAKE ' .. wrong) end
  local closes = step.kind == 'end' and with_cuts(run, step) or step.closes
  local accepted = accepted_by(closes)
  for _, closing in ipairs(closes) do
    if not may_close(run, closing, step.ack, accepted) then return {'conflict', closing.wait} end
  end
  accept(run, step)
  if step.progress or step.kind == 'park' or step.kind == 'block' then run.tries = 0 end
  if step.kind ~= 'end' or step.a == 'error' then put_frames(run, step.put, step.cut) end
  -- The history tells what the step came from, the step, and what it leaves behind.
  close_those(run, closes, false)
  tell(run, step)
  close_those(run, closes, true)
  if run.unread > 0 then read_mailbox(run, step.ack, accepted) end
  for _, arm in ipairs(step.arms) do arm_wait(run, arm) end
  for _, child in ipairs(step.spawns) do spawn_child(run, child) end
  return go_on(run, step)
end
