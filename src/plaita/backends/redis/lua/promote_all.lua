--! verb promote_all
--! class allow-oom
--! uses rows quota
--! args n
-- Adjust to a cap that is another one than before: up to n runs a call; answers how many.
local n, count = tonumber(args.n), 0
for _, tenant in ipairs(redis.call('SMEMBERS', tenants_key())) do
  for kind = RESUME, START do
    if count == n then break end
    for _, id in ipairs(redis.call('ZRANGE', parked_key(tenant, kind), 0, n - count - 1)) do
      if count == n or not has_room(tenant) then break end
      let_in(id)
      count = count + 1
    end
  end
end
flush()
return count
