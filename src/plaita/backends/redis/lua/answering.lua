--! fragment answering
--! uses rows quota match
-- Resolve a wait unless it is gone or answered; a candidate on offer is overtaken.

local function answer(run, wait_id, data, by)
  if not run or TERMINAL[run.status] or run.cancel or run.armed == 0 then return {'no_such_wait'} end
  local wait = find_wait(run, wait_id)
  if not wait then return {'no_such_wait'} end
  if wait.state ~= 'open' then return {'already_resolved', cjson.encode(wait.by)} end
  if wait.cand then withdraw(run, wait, false) end
  resolve(run, wait, by, data)
  return {'woken', run.id}
end
