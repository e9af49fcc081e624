--! verb put_closure
--! class deny-oom
--! args closure document
-- A definition is stored under its hash, once, and is used.
redis.call('SET', closure_key(args.closure), args.document, 'NX')
redis.call('ZADD', closures_used_key(), 'GT', now, args.closure)
return now
