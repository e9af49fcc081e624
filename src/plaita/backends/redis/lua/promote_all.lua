--! verb promote_all
--! class allow-oom
--! uses rows quota
--! args
-- Adjust to a cap that is another one than before.
for _, tenant in ipairs(redis.call('SMEMBERS', tenants_key())) do
  if LIMITS.cap then
    promote(tenant)
  else
    for kind = RESUME, START do
      for _, id in ipairs(redis.call('ZRANGE', parked_key(tenant, kind), 0, -1)) do
        local run = find_run(id)
        dequeue(run)
        run.parked = false
        set_slot(run, true)
        run.due = now
      end
    end
  end
end
flush()
return 1
