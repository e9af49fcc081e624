--! verb offer
--! class deny-oom
--! uses rows
--! args id body envelope*
-- Store a message; while one of that id waits, another changes nothing.
if redis.call('HEXISTS', offered_key(), args.id) == 1 then return 1 end
local entry = redis.call('XADD', inbox_key(), '*', 'payload', args.body, 'message_id', args.id, 'at',
  string.format('%d', now), unpack(args.envelope))
redis.call('HSET', offered_key(), args.id, entry)
stirred = true
flush()
return 0
