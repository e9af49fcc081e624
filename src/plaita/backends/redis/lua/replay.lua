--! verb replay
--! class deny-oom
--! uses recording
--! args letter result force run message body at envelope* actor source tenant schema
-- Send a dead letter again, once: the marker says that it was. result: why not, as far as the caller knows. The letter
-- stays where it is, and every attempt is recorded.

local MARKED = 7 * 86400000
local TOMBSTONE = LIMITS.tombstone
local marker = replayed_key(dlq_key(), args.letter)

local function was_deleted()
  if args.run == '' or redis.call('EXISTS', run_key(args.run)) == 1 then return false end
  local buried = redis.call('HGET', grave_key(args.run), 'buried')
  if buried then return now < tonumber(buried) + TOMBSTONE end
  return redis.call('EXISTS', execution_tombstone_key(args.run)) == 1
end

local function result_of(marked)
  if #redis.call('XRANGE', dlq_key(), args.letter, args.letter) == 0 then return 'not_replayable' end
  if args.result ~= '' then return args.result end
  if was_deleted() then return 'execution_deleted' end
  if marked and args.force == '' then return 'already_replayed' end
  return redis.call('HEXISTS', offered_key(), args.message) == 1 and 'enqueue_failed' or 'ok'
end

local function send(marked)
  local entry = redis.call('XADD', inbox_key(), '*', 'payload', args.body, 'message_id', args.message, 'at', args.at,
    unpack(args.envelope))
  redis.call('HSET', offered_key(), args.message, entry)
  local attempts = marked and tonumber(string.match(marked, '"attempts":%s*(%d+)')) or 0
  redis.call('SET', marker, '{"actor":' .. cjson.encode(args.actor) .. ',"ts":' .. seconds() .. ',"dlq_key":'
    .. cjson.encode(dlq_key()) .. ',"dlq_id":' .. cjson.encode(args.letter) .. ',"tenant_id":'
    .. cjson.encode(args.tenant) .. ',"schema_version":' .. args.schema .. ',"execution_id":' .. cjson.encode(args.run)
    .. ',"target_stream":' .. cjson.encode(inbox_key()) .. ',"target_message_id":' .. cjson.encode(entry)
    .. ',"attempts":' .. string.format('%d', attempts + 1) .. ',"force":' .. (args.force ~= '' and 'true' or 'false')
    .. '}', 'PX', MARKED)
  redis.pcall('PUBLISH', hints_key(), '')
  return entry
end

local marked = redis.call('GET', marker)
local result = result_of(marked)
local entry = result == 'ok' and send(marked) or ''
record('dlq.replay', result, entry)
return {result, entry}
