--! fragment gates
--! uses rows tallies foreign
-- What may come in. Age, epoch and family hold for messages without a live run, a disabled tenant for all but a cancel.

local function is_live(run)
  return run and not TERMINAL[run.status]
end

-- The documented switch of a tenant: a word, or an object with it.
local function is_disabled(tenant)
  local said = call_foreign('HGET', tenant_status_key(), tenant)
  if not said or said == 'active' then return false end
  local word = said == 'disabled' and said or string.match(said, '"status"%s*:%s*"(%a+)"')
  if word ~= 'disabled' and word ~= 'active' then tally('tenant_status_unreadable') end
  return word == 'disabled'
end

-- Whether the tenants of the store are of another epoch than the one this deployment is for. Where that is not known
-- the default tenant passes; where theirs is a later one, nobody does.
local function is_of_another_epoch(tenant)
  if LIMITS.epoch == '' then return false end
  local said = call_foreign('GET', tenant_epoch_key()) or ''
  if said == LIMITS.epoch then return false end
  local theirs = string.find(said, '^%d+$') and tonumber(said)
  local ours = string.find(LIMITS.epoch, '^%d+$') and tonumber(LIMITS.epoch)
  if theirs and ours and theirs == ours then return false end
  if tenant == 'default' and not (theirs and ours and theirs > ours) then return false end
  tally('tenant_status_stale_epoch')
  return true
end
