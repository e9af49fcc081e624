--! fragment starts
--! record kind flow_id closure flow_version entry imports
-- What a run was started with. What it shares with the other runs of its definition is kept once, under a name made of
-- what it says.

local NAME_LENGTH = 16

-- The name of a kind that is kept from here on.
local function keep_kind(facts)
  local said = cjson.encode(values_of_kind(facts))
  local name = string.sub(redis.sha1hex(said), 1, NAME_LENGTH)
  redis.call('HSETNX', kinds_key(), name, said)
  return name
end

local function kind_of_run(run)
  if not run.shared then run.shared = kind_of(cjson.decode(redis.call('HGET', kinds_key(), run.kind))) end
  return run.shared
end
