--! verb next_due
--! class allow-oom
--! args
-- The earliest time at which somebody must look, '' when nobody must; and the store's time.
local earliest
local function look(place)
  local first = redis.call('ZRANGE', place, 0, 0, 'WITHSCORES')
  local at = tonumber(first[2])
  if at and (not earliest or at < earliest) then earliest = at end
end
for _, queue in ipairs(redis.call('SMEMBERS', queues_key())) do
  look(leases_key(queue))
  look(due_key(queue, 0))
  for _, priority in ipairs(redis.call('ZRANGE', priorities_key(queue), 0, -1)) do look(due_key(queue, priority)) end
end
return {earliest or '', now}
