--! verb publish_flow
--! class deny-oom
--! uses rows
--! args flow version closure
-- Make a closure the latest version of a flow.
local number = redis.call('HINCRBY', counters_key(), 'flow', 1)
redis.call('SET', version_key(args.flow, args.version), cjson.encode({args.closure, now}))
redis.call('ZADD', versions_key(args.flow), number, args.version)
redis.call('ZADD', flows_key(), 0, args.flow)
return now
