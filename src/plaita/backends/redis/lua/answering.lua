--! fragment answering
--! uses rows match
-- What is said to a wait from outside.

-- The open wait of that id; or false and why there is none.
local function find_open(run, wait_id)
  if not run or TERMINAL[run.status] or run.cancel or run.armed == 0 then return false, {'no_such_wait'} end
  local wait = find_wait(run, wait_id)
  if not wait then return false, {'no_such_wait'} end
  if wait.state ~= 'open' then return false, {'already_resolved', cjson.encode(wait.by)} end
  return wait
end

-- Ask the holder to close an open wait as its deadline would: what was published or answered first counts.
local function elapse(run, wait_id)
  local wait, refusal = find_open(run, wait_id)
  if not wait then return refusal end
  for _, mail in ipairs(run.box) do
    if mail[2] == 'timeout' and mail[3] == wait_id then return {'woken', run.id} end
  end
  post(run, 'timeout', wait, 'null', 0)
  return {'woken', run.id}
end

-- Resolve a wait unless it is gone or answered; a candidate on offer is overtaken.
local function answer(run, wait_id, data, by)
  local wait, refusal = find_open(run, wait_id)
  if not wait then return refusal end
  if wait.cand then withdraw(run, wait, false) end
  resolve(run, wait, by, data)
  return {'woken', run.id}
end
