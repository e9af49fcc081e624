--! fragment quota
--! uses rows tallies foreign
--! state caps={} lifted={}
-- Who counts as running: every step that changes it goes through these.

local RESUME, START = 0, 1

local PROMOTED_AT_ONCE = 100
local SLOT_KEPT = 86400

-- How many runs of a tenant may run: what the documented table says of it, else the setting; false for any number.
local function cap_of(tenant)
  if caps[tenant] == nil then
    local said = call_foreign('HGET', tenant_quota_key(), tenant)
    if said then
      local cap = string.find(said, '^%s*[+-]?%d+%s*$') and tonumber(said)
      if not cap then tally('tenant_quota_unreadable') end
      caps[tenant] = cap and cap > 0 and cap or false
      lifted[tenant] = not caps[tenant]
    else
      caps[tenant] = LIMITS.cap
    end
  end
  return caps[tenant]
end

-- A run that was given a slot beside the cap (2) keeps it until it is free, and does not count.
local function set_slot(run, on)
  if run.slot == on or (on and run.slot) then return end
  run.slot = on
  put_member(running_key(run.tenant), run.id, on and math.floor(now / 1000) + SLOT_KEPT)
  -- Where slots are counted, the next look counts this one.
  if cap_of(run.tenant) then write_indexes() end
end

local function has_room(tenant)
  local cap = cap_of(tenant)
  return not cap or redis.call('ZCARD', running_key(tenant)) < cap
end

local function dequeue(run)
  redis.call('ZREM', parked_key(run.tenant, RESUME), run.id)
  redis.call('ZREM', parked_key(run.tenant, START), run.id)
end

-- An unheld run has work: due now with a slot, else queued for one. A holder is told by renew and settle.
local function runnable(run, kind)
  if run.nonce or run.blocked then return end
  if run.slot or has_room(run.tenant) then
    set_slot(run, true)
    run.due = now
  elseif not run.parked then
    run.due = false
    run.parked = true
    local number = redis.call('HINCRBY', counters_key(), 'parked', 1)
    redis.call('ZADD', parked_key(run.tenant, kind), number, run.id)
    redis.call('SADD', tenants_key(), run.tenant)
  end
end

local function head(tenant, kind)
  return redis.call('ZRANGE', parked_key(tenant, kind), 0, 0)[1]
end

local function next_parked(tenant)
  local id = head(tenant, RESUME) or head(tenant, START)
  if not id or LIMITS.start_every == 0 then return id end
  if redis.call('HINCRBY', promotions_key(), tenant, 1) % LIMITS.start_every ~= 0 then return id end
  return head(tenant, START) or id
end

local function let_in(id)
  local run = find_run(id)
  dequeue(run)
  run.parked = false
  set_slot(run, true)
  run.due = now
end

-- Hand out free slots: resumes before starts, and now and then the oldest start before any resume.
-- Where the documented table has lifted a cap, some came while there was one.
local function promote(tenant)
  if not cap_of(tenant) and not lifted[tenant] then return end
  for _ = 1, PROMOTED_AT_ONCE do
    local id = has_room(tenant) and next_parked(tenant)
    if not id then return end
    let_in(id)
  end
end

-- The run counts no more; whoever waited longest for a slot gets it in the same step.
local function free(run)
  set_slot(run, false)
  if run.parked then
    run.parked = false
    dequeue(run)
  end
  promote(run.tenant)
end
