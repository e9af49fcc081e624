--! fragment finish
--! uses rows quota match
-- How a wait closes and a run ends.

local UNANSWERED = {timeout = true, cut = true, cancel = true}

-- One thing to do to another run: a head of ours, a line break, the data.
local function push_out(head, data)
  redis.call('RPUSH', outbox_key(), cjson.encode(head) .. '\n' .. data)
  stirred = true
end

-- by false: its answer was read. A child nobody waits for any more is cancelled.
local function close(run, wait, by)
  if by then
    wait.by = by
    if UNANSWERED[by.kind] and wait.child then push_out({'cancel', wait.child}, '') end
    say(run, '{"event":"wait_closed","wait":' .. text(wait.id) .. ',"node":' .. text(wait.address) .. ',"by":'
      .. by_facts(by) .. '}')
  end
  if wait.cand and not (by and by.kind == 'event') then consume(run, wait.cand, -1) end
  wait.state, wait.cand = 'closed', false
  save_wait(run, wait)
  close_task(wait)
end

-- What a parent is told. output and error are JSON, '' when there is none.
local function child_answer(id, status, output, failure)
  return '{"run_id":' .. text(id) .. ',"status":' .. text(status) .. ',"output":' .. (output ~= '' and output or 'null')
    .. ',"error":' .. (failure ~= '' and failure or 'null') .. '}'
end

-- What an earlier end left; frames and consumed events are of use to a run that may go on.
local function drop_outcome(run, for_good)
  if not for_good then
    redis.call('HDEL', run_key(run.id), 'out', 'err')
    return
  end
  redis.call('HDEL', run_key(run.id), 'out', 'err', 'f')
  run.frames = nil
  if run.frames_beside then redis.call('UNLINK', frames_key(run.id)) end
  if run.consumed_beside then redis.call('UNLINK', consumed_key(run.id)) end
  run.frames_beside, run.consumed, run.consumed_beside = false, {}, false
end

-- ending: status, output, failure (JSON or ''), failed_node, lost_worker, actor. The only way into a terminal state.
local function finish(run, ending)
  for _, wait in ipairs(live_waits(run)) do
    close(run, wait, wait.state == 'open' and {kind = 'cancel'} or false)
  end
  unpost(run, function() return true end)
  run.status, run.nonce, run.due, run.ended = ending.status, false, false, now
  run.retry, run.blocked, run.blocked_reason = false, false, ''
  free(run)
  run.lost_worker = ending.lost_worker or false
  local output, failure = ending.output or '', ending.failure or ''
  run.failure, run.failed_node = failure, ending.failed_node
  drop_outcome(run, ending.status ~= 'error')
  if output ~= '' then redis.call('HSET', run_key(run.id), 'out', output) end
  if failure ~= '' then redis.call('HSET', run_key(run.id), 'err', failure) end
  local entry = '{"event":"run_ended","status":' .. text(ending.status)
  if ending.lost_worker then entry = entry .. ',"reason":"worker_lost"' end
  if (ending.actor or '') ~= '' then entry = entry .. ',"actor":' .. text(ending.actor) end
  if failure ~= '' then entry = entry .. ',"error":' .. failure end
  say(run, entry .. '}')
  local parent = redis.call('HGET', run_key(run.id), 'p')
  if parent then
    local at = cjson.decode(parent)
    push_out({'wake', at[1], at[2], at[3]}, child_answer(run.id, ending.status, output, failure))
  end
end
