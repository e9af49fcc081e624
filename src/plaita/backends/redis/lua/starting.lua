--! fragment starting
--! uses rows quota
-- A run exists from here on.

-- Answers the run and whether it was there before; or nil and why not: 'conflict', 'tombstoned'.
local function submit(start, digest)
  local run = find_run(start.id)
  if run then
    if start_of(run).digest ~= digest then return nil, 'conflict' end
    return run, true
  end
  local buried = redis.call('HGET', grave_key(start.id), 'buried')
  if buried and now < tonumber(buried) + LIMITS.tombstone then return nil, 'tombstoned' end
  run = add_run(start)
  local facts = run.start
  say(run, '{"event":"submitted","flow":' .. cjson.encode(facts.flow_id) .. ',"version":'
    .. cjson.encode(facts.flow_version) .. '}')
  if type(facts.not_before) == 'number' and facts.not_before > now then
    run.due = facts.not_before
  else
    runnable(run, START)
  end
  return run, false
end
