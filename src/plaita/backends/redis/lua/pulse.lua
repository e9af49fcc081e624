--! fragment pulse
--! uses rows
-- The store's pulse: after a silence, or a clock that went back, nobody takes over for one grace.

-- What was due by the old time is due now, and no lease ends later than one from now on.
local function bring_forward(latest)
  local function moved(place, held)
    local from, to = string.format('(%d', now), held and '+inf' or latest
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', place, from, to)) do
      local run = find_run(id_of(member))
      if held then
        run.due = math.min(run.due, now + LIMITS.lease)
      else
        local not_before = run.status == 'queued' and run.not_before
        run.due = not_before and math.max(now, not_before) or now
      end
    end
  end
  for _, queue in ipairs(redis.call('SMEMBERS', queues_key())) do
    moved(leases_key(queue), true)
    moved(due_key(queue, 0), false)
    for _, priority in ipairs(redis.call('ZRANGE', priorities_key(queue), 0, -1)) do
      if priority ~= '0' then moved(due_key(queue, priority), false) end
    end
  end
end

-- Answers until when grace lasts.
local function contact()
  local found = redis.call('HMGET', pulse_key(), 'contact', 'grace')
  local last, grace = tonumber(found[1] or 0), tonumber(found[2] or 0)
  local silence = now - last
  if silence >= 0 and silence <= math.floor(LIMITS.gap / 4) then return grace end
  if last ~= 0 and (silence > LIMITS.gap or silence < 0) then grace = now + LIMITS.grace end
  if silence < 0 then bring_forward(last + math.floor(LIMITS.gap / 4)) end
  redis.call('HSET', pulse_key(), 'contact', string.format('%d', now), 'grace', string.format('%d', grace))
  return grace
end
