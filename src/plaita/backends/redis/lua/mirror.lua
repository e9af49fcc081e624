--! fragment mirror
--! uses starts foreign indexes
--! state this_time=false
-- What operators and consoles look at: rows, leases and tombstones in the documented layout. Written here, read by no
-- verb, and made of what the headers say: no data of users is opened.

local DAY = 86400000
local FENCE_KEPT = 7 * DAY
local COUNTED = 7 * DAY
local LATEST = 253402214400000

-- Days since 1970 in the calendar: year, month, day.
local function civil(days)
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524)
    - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local fifth = math.floor((5 * of_year + 2) / 153)
  local month = fifth < 10 and fifth + 3 or fifth - 9
  if month <= 2 then year = year + 1 end
  return year + era * 400, month, of_year - math.floor((153 * fifth + 2) / 5) + 1
end

local function iso(at)
  if at > LATEST then at = LATEST end
  local year, month, day = civil(math.floor(at / DAY))
  local rest = at % DAY
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, math.floor(rest / 3600000),
    math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end

local function partition(tenant)
  return tenant == 'default' and '' or tenant .. ':'
end

local function quoted(text_of)
  if text_of == '' then return 'null' end
  return cjson.encode(text_of)
end

local function error_of(run)
  local failure = run.failure or ''
  if failure == '' then return 'null' end
  if string.sub(failure, 1, 2) ~= '{"' then return failure end
  return '{"failed_node":' .. quoted(run.failed_node or '') .. ',' .. string.sub(failure, 2)
end

-- What never changes of a row. An earlier one has it as its tail: its head, while it lives, quotes nothing.
local TAIL = ',"execution_id":'

local function tail_of(run)
  local lives = run.was.status and not run.was.ended
  local earlier = lives and call_foreign('GET', execution_key(partition(run.tenant), run.id))
  local at = earlier and string.find(earlier, TAIL, 1, true)
  if at then return string.sub(earlier, at) end
  local facts = kind_of_run(run)
  return TAIL .. cjson.encode(run.id) .. ',"flow_id":' .. cjson.encode(facts.flow_id)
    .. ',"flow_name":null,"flow_version":' .. quoted(facts.flow_version)
    .. ',"flow_hash":' .. quoted(facts.closure) .. ',"flow_hash_algo":'
    .. (facts.closure == '' and 'null' or '"flow-closure-sha256"') .. ',"engine_version":null,"tenant_id":'
    .. cjson.encode(run.tenant) .. ',"context":{},"start_time":"' .. iso(run.submitted)
    .. '","invoker":"worker","node_timings":null,"timeline":null,"usage":null,"dispatch_pending":null}'
end

local function mirror_row(run)
  this_time = this_time or '"' .. iso(now) .. '"'
  local key = execution_key(partition(run.tenant), run.id)
  local head = '{"status":"' .. run.status .. '","last_update_time":' .. this_time
  if run.ended then
    redis.call('SET', key, head .. ',"end_time":' .. this_time .. ',"error":' .. error_of(run) .. tail_of(run))
    if LIMITS.row_ttl > 0 then redis.call('PEXPIRE', key, LIMITS.row_ttl) end
  else
    redis.call('SET', key, head .. ',"end_time":null,"error":null' .. tail_of(run))
  end
  if not run.was.status then
    call_foreign('ZADD', execution_index_key(partition(run.tenant)), math.floor(run.submitted / 1000), run.id)
  end
end

-- The lease as it stands: who holds the run and until when. The same nonce gives the same name again.
local function mirror_claim(run)
  local was, part = run.was, partition(run.tenant)
  if not run.nonce then
    if was.nonce then redis.call('DEL', execution_lease_key(part, run.id), execution_fence_key(part, run.id)) end
  elseif run.due <= now then
    redis.call('DEL', execution_lease_key(part, run.id))
  elseif was.nonce ~= run.nonce or was.due ~= run.due then
    local generation = string.format('%d', run.generation)
    local instance = string.gsub(string.match(run.nonce, '^(.*)%.') or '', ':', '-')
    local holder = (instance == '' and '' or instance .. ':') .. string.sub(redis.sha1hex(run.nonce), 1, 16)
    redis.call('SET', execution_lease_key(part, run.id), 'resume:' .. holder .. ':' .. generation, 'PX', run.due - now)
    if was.nonce ~= run.nonce then
      redis.call('SET', execution_fence_key(part, run.id), generation, 'PX', FENCE_KEPT)
      redis.call('SET', execution_fencegen_key(part, run.id), generation)
    end
  end
end

-- A counter that consoles look at before they offer a retry.
local function mirror_count(run, key, count)
  if not run.hidden then redis.call('SET', key(partition(run.tenant), run.id), count, 'PX', COUNTED) end
end

-- The id under which programs know a wait: a number made of its name. Sets of numbers are small.
local function subscription_of(run, wait)
  return string.format('%d', tonumber(string.sub(redis.sha1hex(run.id .. '|' .. wait.id), 1, 13), 16))
end

-- Written when the wait is armed, removed in the step that answers or closes it. A wait for events of another key than
-- the run is none that the documented layout can tell. Of its indexes there is the one that programs look in first.
local function mirror_wait(run, wait)
  if wait.type == '' or (wait.key and wait.key ~= run.id) then return end
  local id, index = subscription_of(run, wait), subscription_correlation_key(run.id)
  if wait.state == 'open' then
    local deadline = wait.deadline and tonumber(wait.deadline)
    redis.call('SET', subscription_key(id), '{"subscription_id":"' .. id .. '","event_type":'
      .. cjson.encode(wait.type) .. ',"filter_condition":' .. ((wait.wanted or '') == '' and '{}' or wait.wanted)
      .. ',"correlation_id":' .. cjson.encode(run.id) .. ',"flow_id":' .. cjson.encode(kind_of_run(run).flow_id)
      .. ',"node_id":' .. cjson.encode(wait.node) .. ',"created_at":' .. string.format('%.3f', wait.since / 1000)
      .. ',"timeout":' .. (deadline and string.format('%.3f', (deadline - wait.since) / 1000) or 'null')
      .. ',"tenant_id":' .. (run.tenant == 'default' and 'null' or cjson.encode(run.tenant))
      .. ',"processed_events":[]}')
    begin_anew(index)
    call_foreign('SADD', index, id)
  elseif wait.was == 'open' then
    erase(subscription_key(id))
    -- The last wait takes the whole index with it.
    if #run.live - run.shut == 1 then
      erase(index)
    else
      call_foreign('SREM', index, id)
    end
  end
end

local function mirror_burial(run)
  if run.hidden then return end
  local part = partition(run.tenant)
  redis.call('DEL', execution_key(part, run.id), execution_lease_key(part, run.id), execution_fence_key(part, run.id),
    execution_cancel_key(part, run.id), execution_wakeups_key(part, run.id), execution_failures_key(part, run.id),
    execution_retries_key(part, run.id), execution_refetches_key(part, run.id))
  call_foreign('ZREM', execution_index_key(part), run.id)
  redis.call('PEXPIRE', execution_fencegen_key(part, run.id), LIMITS.generation)
  if LIMITS.tombstone <= 0 then return end
  redis.call('SET', execution_tombstone_key(run.id), '{"tenant":' .. cjson.encode(run.tenant) .. ',"deleted_at":"'
    .. iso(now) .. '","reason":"execution_deleted"}', 'PX', LIMITS.tombstone)
end
