--! fragment outbox
--! uses rows match finish starting answering cancelling publishing
-- What a step promised to do to other runs, done by whoever claims next. Each entry is idempotent.

-- The parent, if it is the same incarnation and still waits: no orphan, no wake otherwise.
local function waiting_parent(id, incarnation, wait_id)
  local run = find_run(id)
  if not run or run.incarnation ~= incarnation or run.armed == 0 then return nil end
  local wait = find_wait(run, wait_id)
  return wait and wait.state == 'open' and run or nil
end

local function tell_parent(id, incarnation, wait_id, data)
  local run = waiting_parent(id, incarnation, wait_id)
  if run then answer(run, wait_id, data, {kind = 'child', digest = string.sub(redis.sha1hex(data), 1, 16)}) end
end

-- at: 'spawn', parent, incarnation, wait id or false, child id, child incarnation, facts, digest, kind kept for it
local function spawn(at, input)
  local id, incarnation, wait_id = at[2], at[3], at[4]
  local start = {id = at[5], incarnation = at[6], facts = at[7], input = input, parent = ''}
  if not wait_id then
    submit(start, at[8])
  elseif waiting_parent(id, incarnation, wait_id) then
    start.parent = cjson.encode({id, incarnation, wait_id})
    local run, refusal = submit(start, at[8])
    if not run then tell_parent(id, incarnation, wait_id, child_answer(at[5], refusal, '', '')) end
  end
  if at[9] then let_go_kind(at[9]) end
end

local function event_of(number)
  local row = redis.call('HMGET', event_key(number), 'type', 'key')
  return {number = number, type = row[1], key = row[2]}
end

-- Answers whether there is more of it. most: waits of a fan-out.
local function carry_on(entry, most)
  local cut = string.find(entry, '\n', 1, true)
  local at, data = cjson.decode(string.sub(entry, 1, cut - 1)), string.sub(entry, cut + 1)
  if at[1] == 'event' then
    local cursor = fan_further(event_of(at[2]), at[3], most)
    if cursor then
      redis.call('LSET', outbox_key(), 0, cjson.encode({'event', at[2], cursor}) .. '\n')
      stirred = true
      return true
    end
    redis.call('HDEL', event_key(at[2]), 'fan')
  end
  redis.call('LPOP', outbox_key())
  if at[1] == 'cancel' then
    cancel(at[2], 'parent')
  elseif at[1] == 'wake' then
    tell_parent(at[2], at[3], at[4], data)
  elseif at[1] == 'spawn' then
    spawn(at, data)
  end
end

-- Carry on up to so many entries, and one chunk of a fan-out at most; answers how many there were.
local function pump(entries, most)
  for done = 0, entries - 1 do
    local entry = redis.call('LINDEX', outbox_key(), 0)
    if not entry then return done end
    if carry_on(entry, most) then return done + 1 end
  end
  return entries
end
