--! verb publish_flow
--! class deny-oom
--! uses starts
--! args flow version closure definition unnamed
-- Make a closure the latest version of a flow. definition: as it was written, '' for one that is not to be shown in the
-- documented layout, because it came from there. unnamed: it names no version itself.

-- The documented layout joins id and version by a colon, under a name that queues begin with as well.
local function may_show(key, version)
  if string.find(args.flow .. version, ':', 1, true) then return false end
  if key == inbox_key() or key == offered_key() or key == dlq_key() then return false end
  local kind = redis.call('TYPE', key).ok
  return kind == 'none' or kind == 'string'
end

local function show(version)
  local key = published_flow_key('', args.flow .. ':' .. version)
  if not may_show(key, version) then return end
  redis.call('SET', key, args.definition)
  redis.call('SADD', published_versions_key('', args.flow), version)
  redis.call('SADD', published_flows_key(''), args.flow)
end

-- Where a program asks for no version it is given this one. One that somebody else wrote stays.
local function show_latest()
  local ours = redis.call('HGET', shown_latest_key(), args.flow)
  local there = redis.call('GET', published_flow_key('', args.flow .. ':latest'))
  if args.unnamed == '' and not (ours and there and redis.sha1hex(there) == ours) then return end
  show('latest')
  redis.call('HSET', shown_latest_key(), args.flow, redis.sha1hex(args.definition))
end

-- Whoever has just looked the version up may be about to start with what it was.
local replaced = redis.call('GET', version_key(args.flow, args.version))
if replaced then use_closure(cjson.decode(replaced)[1]) end
use_closure(args.closure)

local number = redis.call('HINCRBY', counters_key(), 'flow', 1)
redis.call('SET', version_key(args.flow, args.version), cjson.encode({args.closure, now}))
redis.call('ZADD', versions_key(args.flow), number, args.version)
redis.call('ZADD', flows_key(), 0, args.flow)
if args.definition ~= '' then
  show(args.version)
  show_latest()
end
return now
