--! verb forget_closures
--! class allow-oom
--! args older closures*
-- Definitions that nobody has go, unless they were used since that time: whoever looked may have missed who has one.
local older, spare = tonumber(args.older), {}
for _, closure in ipairs(args.closures) do
  local at = redis.call('ZSCORE', closures_used_key(), closure)
  if at and tonumber(at) < older then spare[#spare + 1] = closure end
end
for _, closure in ipairs(spare) do
  redis.call('UNLINK', closure_key(closure))
  redis.call('ZREM', closures_used_key(), closure)
end
return #spare
