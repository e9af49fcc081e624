--! fragment deferring
--! uses rows match quota
-- An event may concern many thousands. What it is to most of them is noted in three indexes, and decided by whoever
-- next looks at the execution: as of the moment at which it was noted, and before anything else is done with it. To
-- decide is to change the header and what follows from it, all of which a flush writes: a step that looks and writes
-- nothing leaves what is noted to the next.

-- Whether this event is all there is for a run and its only wait. values: the list that a header is.
function DEFERRED.may(values, wait_id, number)
  local at = AT.run
  local box, live = values[at.box], values[at.live]
  if values[at.status] ~= 'suspended' or values[at.nonce] or values[at.cancel] or values[at.blocked]
    or values[at.parked] or values[at.consumed_beside] or (box and #box > 0) then
    return false
  end
  local consumed = values[at.consumed] or NONE
  if #consumed >= 2 * CONSUMED_MAX then return false end
  for i, taken in ipairs(consumed) do
    if i % 2 == 1 and taken == number then return false end
  end
  local due, tenant = values[at.due] and tonumber(values[at.due]), values[at.tenant]
  local wait = live and #live == 1 and live[1]
  return type(wait) == 'table' and wait[AT.wait.id] == wait_id and (wait[AT.wait.state] or 'open') == 'open'
    and not (due and due <= now) and not cap_of(DEFERRED.tenant(tenant))
end

-- The tenant that a header names.
function DEFERRED.tenant(named)
  return named == '' and DEFAULT_TENANT or named
end

-- Add to the list of an index.
function DEFERRED.add(indexes, index, member, score)
  local members = indexes[index]
  if not members then
    members = {}
    indexes[index] = members
  end
  local count = #members
  if score then
    members[count + 1], members[count + 2] = score, member
  else
    members[count + 1] = member
  end
end

-- Answers whether it could be noted. notes: what is to be written, by index.
function DEFERRED.note(notes, run_id, wait_id, event, member)
  if rows[run_id] ~= nil then return false end
  local raw = redis.call('HGET', run_key(run_id), 'h')
  local values = raw and cjson.decode(raw)
  if not values or not DEFERRED.may(values, wait_id, event.number) then return false end
  local at, wait = AT.run, values[AT.run.live][1]
  local queue, priority = values[at.queue] or USUAL.run[at.queue], values[at.priority] or USUAL.run[at.priority]
  DEFERRED.add(notes.coming, deferred_key(), run_id, now)
  DEFERRED.add(notes.coming, due_key(queue, priority), string.format(MEMBER, values[at.rid], run_id), now)
  local running = running_key(DEFERRED.tenant(values[at.tenant]))
  DEFERRED.add(notes.coming, running, run_id, math.floor(now / 1000) + SLOT_KEPT)
  if not wait[AT.wait.by_filter] then
    local key = wait[AT.wait.key]
    DEFERRED.add(notes.going, key and waiting_keyed_key(event.type, key) or waiting_key(event.type), member)
  end
  return true
end

function DEFERRED.write(notes)
  for index, members in pairs(notes.coming) do
    in_parts('ZADD', index, members)
    stirred = true
  end
  for index, members in pairs(notes.going) do in_parts('ZREM', index, members) end
end

-- Which of these runs have something noted, by id.
function DEFERRED.among(members)
  local ids, found = {}, {}
  for i, at in ipairs(members) do ids[i] = at[1] end
  if #ids == 0 then return found end
  for i, since in ipairs(redis.call('ZMSCORE', deferred_key(), unpack(ids))) do
    if since then found[ids[i]] = true end
  end
  return found
end

function DEFERRED.decide(run)
  local since = redis.call('ZSCORE', deferred_key(), run.id)
  if not since then return end
  local present, present_stamp = now, stamp
  -- It counts as running since then, whatever cap its tenant has by now.
  run.deferred, run.was.due, run.slot = true, tonumber(since), true
  now, stamp = run.was.due, false
  match(run, find_wait(run, live_ids(run)[1]))
  now, stamp = present, present_stamp
end
