--! fragment starts
--! record kind flow_id closure flow_version entry imports
-- What a run was started with. What it shares with the other runs of its definition is kept once, under a name made of
-- what it says, as long as a run has it or a child is promised that will.

-- Kinds with names of another length are of those that nobody counts: they stay.
local NAME_LENGTH = 17

-- Noted of a definition that is there, so that it is young.
local function use_closure(closure)
  redis.call('ZADD', closures_used_key(), 'XX', 'GT', now, closure)
end

-- One more has a kind, whose name it answers. Whoever looked at all kinds before this one was there finds its
-- definition young.
local function keep_kind(facts)
  local said = cjson.encode(values_of_kind(facts))
  local name = string.sub(redis.sha1hex(said), 1, NAME_LENGTH)
  redis.call('HSETNX', kinds_key(), name, said)
  redis.call('HINCRBY', kinds_counted_key(), name, 1)
  use_closure(facts.closure)
  return name
end

-- One that had it is gone.
local function let_go_kind(name)
  if #name == NAME_LENGTH and redis.call('HINCRBY', kinds_counted_key(), name, -1) == 0 then
    redis.call('HDEL', kinds_counted_key(), name)
    redis.call('HDEL', kinds_key(), name)
  end
end

local function kind_of_run(run)
  if not run.shared then run.shared = kind_of(cjson.decode(redis.call('HGET', kinds_key(), run.kind))) end
  return run.shared
end
