--! fragment starts
-- What a run was started with.

local function start_of(run)
  if not run.start then run.start = cjson.decode(redis.call('HGET', run_key(run.id), 's')) end
  return run.start
end
