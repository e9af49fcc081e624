--! fragment reopening
--! uses rows quota
-- A run that ended in error, or was blocked, goes on where it stopped. How often that helps is bounded.

local function reopen(run)
  if run.blocked then
    run.blocked, run.blocked_reason = false, ''
  elseif run.status ~= 'error' then
    return {'not_retryable', 'status_' .. run.status}
  elseif kind_of_run(run).closure == '' then
    return {'not_retryable', 'no_definition'}
  elseif run.lost_worker and run.wakeups >= LIMITS.wakeups_max then
    return {'not_retryable', 'wakeups_exhausted'}
  elseif not run.lost_worker and run.failures >= LIMITS.failures_max then
    return {'not_retryable', 'deterministic_failures'}
  else
    if run.lost_worker then
      run.wakeups = run.wakeups + 1
      mirror_count(run, execution_wakeups_key, run.wakeups)
    else
      run.failures = run.failures + 1
      mirror_count(run, execution_failures_key, run.failures)
    end
    run.lost_worker = false
    redis.call('HDEL', run_key(run.id), 'err')
    run.ended, run.status, run.reopened = false, 'running', true
    run.failure = ''
  end
  run.tries, run.lost = 0, 0
  say(run, '{"event":"reopened"}')
  runnable(run, RESUME)
  return {'reopened', run.id}
end
