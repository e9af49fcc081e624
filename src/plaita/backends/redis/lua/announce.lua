--! verb announce
--! class allow-oom
--! args holder record ttl instance shown
-- A process is there until it leaves, or does not say so again in time.
-- Answers whether it was there before.
local known = redis.call('ZSCORE', processes_key(), args.holder)
if not known then
  redis.call('ZADD', processes_key(), redis.call('HINCRBY', counters_key(), 'process', 1), args.holder)
end
redis.call('SET', process_key(args.holder), args.record, 'PX', args.ttl)
if args.shown ~= '' then redis.call('SET', registry_key(args.instance), args.shown, 'PX', args.ttl) end
return known and 1 or 0
