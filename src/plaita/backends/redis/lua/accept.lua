--! verb accept
--! class deny-oom
--! uses rows match starting answering cancelling flagging reopening publishing gates tallies
--! args entry message body at quotation quoted dlq_max kind since foreign names_tenant beside tenant flow expected id asked name incarnation facts input digest failure wait data actor type keyed key texts* unreadable*
-- A message leaves the inbox in the step of its effect. What it says was read by the caller: kind is start, event,
-- answer, elapse, go_on, revive, stop, or the reason why it cannot be read. texts: for each refusal its words.

local words = {}
for i = 1, #args.texts, 2 do words[args.texts[i]] = args.texts[i + 1] end

-- Reasons whose words are the documented ones.
local SPOKEN = {unsupported_schema = true, max_deliveries = true, family_mismatch = true}

-- The documented dead letter: members that the caller made of the entry, and the message as it came; beside it what a
-- replay needs to send the same message. Letters are in the order of the time of this store.
local function refused(reason, detail)
  detail = detail or words[reason]
  local letter = {'payload', '{"reason":' .. text(SPOKEN[reason] and detail or reason .. ': ' .. detail)
    .. ',"source_stream":' .. text(inbox_key()) .. ',"source_id":' .. text(args.entry) .. ',"dead_lettered_at":'
    .. string.format('%.3f', now / 1000) .. ',' .. args.quotation .. ',"payload":'
    .. (args.quoted == '' and args.body or args.quoted) .. '}', 'message_id', args.message, 'at', args.at}
  if args.quoted ~= '' then
    letter[#letter + 1] = 'body'
    letter[#letter + 1] = args.body
  end
  local added = redis.pcall('XADD', dlq_key(), string.format('%d-*', now), unpack(letter))
  if type(added) == 'table' then redis.call('XADD', dlq_key(), '*', unpack(letter)) end
  local trimmed = redis.call('XTRIM', dlq_key(), 'MAXLEN', args.dlq_max)
  if trimmed > 0 then tally('dlq_trimmed', trimmed) end
  tally('dead')
  return {'dead', reason, detail}
end

local function start(run)
  if run and run.tenant ~= args.tenant then return refused('conflict', words.tenant) end
  local begun, there = submit({id = args.id, incarnation = args.incarnation, facts = args.facts, input = args.input,
    parent = '', beside = args.beside ~= ''}, args.digest)
  if not begun then return refused(there) end
  if args.beside ~= '' and not there then tally('quota_bypass') end
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

-- Executions go on by themselves: nobody has to tell them.
local function standing(run)
  if TERMINAL[run.status] then return {'passed', 'already_terminal'} end
  return {'passed', run.status == 'suspended' and 'already_suspended' or 'goes_on'}
end

-- Whether a wait, if there is one, waits for the type of event that the message names.
local function fits(run)
  local wait = run.armed > 0 and find_wait(run, args.wait)
  return not wait or args.type == '' or wait.type == '' or wait.type == args.type
end

local function aimed(run)
  local asks = args.kind ~= 'answer' and args.kind ~= 'elapse' and is_live(run)
  if (asks and take_flag(run)) or args.kind == 'stop' then
    return {'stopped', cancel(run.id, args.actor)}
  end
  if args.kind == 'revive' and (run.blocked or run.status == 'error') then return {'retried', reopen(run)} end
  if args.kind == 'revive' or args.kind == 'go_on' then return standing(run) end
  if not fits(run) then return {'passed', 'not_bound'} end
  if args.kind == 'elapse' then return {'resumed', elapse(run, args.wait)} end
  local wait = words.invalid_payload and run.armed > 0 and find_wait(run, args.wait)
  if wait and wait.task then return refused('invalid_payload') end
  return {'resumed', answer(run, args.wait, args.data, {kind = 'hand', digest = args.digest, actor = args.actor})}
end

local AIMED = {answer = true, elapse = true, go_on = true, revive = true, stop = true}

-- An entry of another fleet stays for it, until nobody can be expected to come.
local function leave()
  if now - tonumber(string.match(args.entry, '^%d+')) > LIMITS.message_age then return refused('family_mismatch') end
  tally('config_family_mismatch')
  return {'left'}
end

-- Why a message without a live run has no effect.
local function gate()
  local age = now - tonumber(args.since)
  if age > LIMITS.message_age then
    return refused('too_old', string.format('sent %d ms ago; at most %d are allowed', age, LIMITS.message_age))
  end
  if args.kind ~= 'stop' and args.names_tenant ~= '' and is_of_another_epoch(args.tenant) then
    return refused('stale_epoch', 'the tenants of this store are of another epoch than ' .. LIMITS.epoch)
  end
  return nil
end

local function carry_out()
  local for_run = args.kind == 'start' or AIMED[args.kind]
  local run = args.name ~= '' and find_run(args.name) or args.asked ~= '' and find_run(args.asked) or false
  if for_run and (run and run.id or '') ~= args.expected then return {'again'} end
  local live = is_live(args.kind == 'start' and find_run(args.asked) or run)
  if args.foreign ~= '' and not live then return leave() end
  if args.kind == 'max_deliveries' and live then
    tally('dlq_guard_skipped')
    return {'left'}
  end
  if args.kind == 'event' then
    return {'event', publish(args.id, args.type, args.keyed ~= '' and args.key, args.data)}
  end
  if not for_run then return refused(args.kind) end
  local refusal = not live and gate()
  if refusal then return refusal end
  if args.kind ~= 'stop' and is_disabled(args.tenant) then
    return refused('tenant_disabled', 'tenant ' .. args.tenant .. ' is disabled')
  end
  if args.kind == 'start' then return start(run) end
  if not run or run.tenant ~= args.tenant then return refused('no_run') end
  if args.flow ~= '' and args.flow ~= kind_of_run(run).flow_id then return refused('conflict') end
  return aimed(run)
end

-- What had no effect, and what was let through although it could not be read, is counted.
local function count(outcome)
  local kind, answer = outcome[1], outcome[2]
  if kind == 'resumed' and answer[1] ~= 'woken' then tally('message_late') end
  if kind == 'passed' or (kind == 'retried' and answer[1] == 'not_retryable') then tally('message_passed') end
  if kind ~= 'dead' then
    for _, name in ipairs(args.unreadable) do tally(name) end
  end
end

if #redis.call('XRANGE', inbox_key(), args.entry, args.entry) == 0 then return {'gone'} end
local outcome = carry_out()
if outcome[1] ~= 'again' and outcome[1] ~= 'left' then
  redis.call('XACK', inbox_key(), GROUP, args.entry)
  redis.call('XDEL', inbox_key(), args.entry)
  redis.call('HDEL', offered_key(), args.message)
  count(outcome)
  flush()
end
return outcome
