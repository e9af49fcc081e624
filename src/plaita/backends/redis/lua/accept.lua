--! verb accept
--! class deny-oom
--! uses rows quota match starting answering cancelling publishing
--! args entry message body at quotation quoted dlq_max kind since tenant expected id asked name incarnation facts input digest failure wait data actor type keyed key texts*
-- A producer's message leaves the inbox in the step of its effect. What it says was read by the caller: kind is start,
-- answer, event, stop, or the reason why it cannot be read. texts: for each refusal its reason and its words.

local words = {}
for i = 1, #args.texts, 2 do words[args.texts[i]] = args.texts[i + 1] end

-- The documented dead letter: members that the caller made of the entry, and the message as it came.
local function quote(reason, detail)
  local spoken = (reason == 'unsupported_schema' or reason == 'max_deliveries') and detail or reason .. ': ' .. detail
  redis.call('XADD', dlq_key(), '*', 'payload', '{"reason":' .. text(spoken) .. ',"source_stream":' .. text(inbox_key())
    .. ',"source_id":' .. text(args.entry) .. ',"dead_lettered_at":' .. string.format('%.3f', now / 1000) .. ','
    .. args.quotation .. ',"payload":' .. (args.quoted == '' and args.body or args.quoted) .. '}')
  redis.call('XTRIM', dlq_key(), 'MAXLEN', args.dlq_max)
end

local function refused(reason, detail)
  local number = redis.call('HINCRBY', counters_key(), 'dead', 1)
  detail = detail or words[reason]
  redis.call('DEL', dead_letter_key(args.message))
  redis.call('HSET', dead_letter_key(args.message), 'body', args.body, 'at', args.at, 'reason', reason, 'detail',
    detail, 'died', string.format('%d', now))
  redis.call('ZADD', dead_key(), number, args.message)
  quote(reason, detail)
  return {'dead', reason, detail}
end

local function is_live(run)
  return run and not TERMINAL[run.status]
end

-- The documented switch of a tenant: a word, or an object with it.
local function is_disabled(tenant)
  local found = redis.call('HGET', tenant_status_key(), tenant)
  return found and (found == 'disabled' or string.find(found, '"status"%s*:%s*"disabled"') ~= nil)
end

local function start(run)
  if run and run.tenant ~= args.tenant then return refused('conflict', words.tenant) end
  if run and args.facts == '' then return refused('unknown_flow') end
  local begun, there = submit({id = args.id, incarnation = args.incarnation, facts = args.facts, input = args.input,
    parent = ''}, args.digest)
  if not begun then return refused(there) end
  for _, name in ipairs({args.name, args.asked}) do
    if name ~= '' and not find_run(name) then
      redis.call('SET', name_key(name), begun.id)
      redis.call('SADD', names_key(begun.id), name)
      rows[name] = begun
    end
  end
  if args.failure ~= '' and not there then finish(begun, {status = 'error', failure = args.failure}) end
  return {'started', begun.id, there and 1 or 0}
end

local function carry_out()
  if args.kind == 'event' then
    return {'event', publish(args.id, args.type, args.keyed ~= '' and args.key, args.data)}
  end
  if args.kind ~= 'start' and args.kind ~= 'answer' and args.kind ~= 'stop' then return refused(args.kind) end
  local run = args.name ~= '' and find_run(args.name) or find_run(args.asked)
  if (run and run.id or '') ~= args.expected then return {'again'} end
  local named = args.kind == 'start' and find_run(args.asked) or run
  local age = now - tonumber(args.since)
  if not is_live(named) and age > LIMITS.message_age then
    return refused('too_old', string.format('sent %d ms ago; at most %d are allowed', age, LIMITS.message_age))
  end
  if args.kind ~= 'stop' and is_disabled(args.tenant) then
    return refused('tenant_disabled', 'tenant ' .. args.tenant .. ' is disabled')
  end
  if args.kind == 'start' then return start(run) end
  if not run or run.tenant ~= args.tenant then return refused('no_run') end
  if args.kind == 'stop' then return {'stopped', cancel(run.id, args.actor)} end
  return {'resumed', answer(run, args.wait, args.data, {kind = 'hand', digest = args.digest, actor = args.actor})}
end

if #redis.call('XRANGE', inbox_key(), args.entry, args.entry) == 0 then return {'gone'} end
local outcome = carry_out()
if outcome[1] ~= 'again' then
  redis.call('XACK', inbox_key(), 'plaita-workers', args.entry)
  redis.call('XDEL', inbox_key(), args.entry)
  redis.call('HDEL', offered_key(), args.message)
  flush()
end
return outcome
