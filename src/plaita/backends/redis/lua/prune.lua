--! verb prune
--! class allow-oom
--! uses rows burying
--! args older n
-- One portion of runs that ended before that time, and events and dead letters that are as old.
local older, n = tonumber(args.older), tonumber(args.n)
local ids = redis.call('ZRANGEBYSCORE', ended_key(), '-inf', string.format('(%d', older), 'LIMIT', 0, n)
for _, id in ipairs(ids) do bury(find_run(id)) end

-- What no live run and no fan-out can still want. Born grows with the number of the run.
local oldest = tonumber(redis.call('HGET', counters_key(), 'event') or 0)
for _, status in ipairs({'queued', 'running', 'suspended'}) do
  local id = redis.call('ZRANGE', by_status_key(status), 0, 0)[1]
  if id then oldest = math.min(oldest, find_run(id).born) end
end
local before = string.format('(%d', older)
for _, number in ipairs(redis.call('ZRANGEBYSCORE', event_times_key(), '-inf', before, 'LIMIT', 0, 1000)) do
  local row = redis.call('HMGET', event_key(number), 'id', 'type', 'key', 'fan')
  if tonumber(number) <= oldest and not row[4] then
    redis.call('DEL', event_key(number), event_id_key(row[1]))
    redis.call('ZREM', event_times_key(), number)
    redis.call('ZREM', typed_key(row[2]), number)
    if row[3] then redis.call('ZREM', keyed_key(row[2], row[3]), number) end
  end
end

if older > 0 then redis.call('XTRIM', dlq_key(), 'MINID', string.format('%d', older)) end
return #ids
