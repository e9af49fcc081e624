--! fragment starting
--! uses rows quota tallies foreign
-- A run exists from here on.

local BESIDE = 2

-- Whether somebody else buried an execution of that id; one of another tenant is none of ours.
local function was_deleted(start)
  local stone = call_foreign('GET', execution_tombstone_key(start.id))
  if not stone then return false end
  local sound, said = pcall(cjson.decode, stone)
  if not sound or type(said) ~= 'table' then
    tally('tombstone_unreadable')
    return false
  end
  return said.tenant == cjson.decode(start.facts).tenant
end

-- Answers the run and whether it was there before; or nil and why not: 'conflict', 'tombstoned', 'undefined'.
-- start.beside: its first slot does not count for the cap. start.closure: there is no run without this definition.
local function submit(start, digest)
  local run = find_run(start.id)
  if run then
    if run.digest ~= kept_digest(digest) then return nil, 'conflict' end
    return run, true
  end
  local buried = redis.call('HGET', grave_key(start.id), 'buried')
  if buried and now < tonumber(buried) + LIMITS.tombstone then return nil, 'tombstoned' end
  if not buried and was_deleted(start) then return nil, 'tombstoned' end
  if start.closure and redis.call('EXISTS', closure_key(start.closure)) == 0 then return nil, 'undefined' end
  run = add_run(start)
  local facts = run.shared
  say(run, '{"event":"submitted","flow":' .. cjson.encode(facts.flow_id) .. ',"version":'
    .. cjson.encode(facts.flow_version) .. '}')
  if run.not_before and run.not_before > now then
    run.due = run.not_before
  else
    if start.beside then run.slot = BESIDE end
    runnable(run, START)
  end
  return run, false
end
