--! verb withdraw
--! class allow-oom
--! args holder instance shown ttl
-- A process is not there any more. The registry shows for a time that it stopped, if it showed it before.
if args.shown ~= '' then redis.call('SET', registry_key(args.instance), args.shown, 'PX', args.ttl) end
redis.call('ZREM', processes_key(), args.holder)
redis.call('DEL', process_key(args.holder))
