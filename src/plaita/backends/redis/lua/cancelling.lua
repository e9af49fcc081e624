--! fragment cancelling
--! uses rows match finish
-- End a run; a holder that may be alive is asked, everybody else is not.

local function cancel(id, actor)
  local run = find_run(id)
  if not run then return {'no_run'} end
  if TERMINAL[run.status] then return {'already_terminal', run.status} end
  local grace = tonumber(redis.call('HGET', pulse_key(), 'grace') or 0)
  if not run.nonce or ((not run.due or run.due <= now) and grace <= now) then
    finish(run, {status = 'cancelled', actor = actor})
    return {'cancelled'}
  end
  for _, wait in ipairs(live_waits(run)) do
    if wait.state == 'open' then close(run, wait, {kind = 'cancel', actor = actor}) end
  end
  if not run.cancel then
    run.cancel = true
    called[#called + 1] = run.id
    say(run, '{"event":"cancel_requested","actor":' .. text(actor) .. '}')
  end
  return {'cancel_requested'}
end
