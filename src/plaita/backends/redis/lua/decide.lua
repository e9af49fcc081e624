--! verb decide
--! class deny-oom
--! uses rows answering
--! args task version actor vote answer digest
-- Write the vote unless the task is closed, moved on, or the actor may not vote or has voted. A decided task wakes its
-- wait in the same step.
local key = task_key(args.task)
local row = redis.call('HMGET', key, 'status', 'version', 'voters', 'approvers', 'run', 'wait')
if not row[1] then return {'no_task'} end
if row[1] ~= 'open' then return {'already_decided', row[1]} end
local voters = row[3] and cjson.decode(row[3]) or {}
for _, actor in ipairs(voters) do
  if actor == args.actor then return {'already_voted'} end
end
local approvers, candidate = cjson.decode(row[4]), false
for _, actor in ipairs(approvers) do candidate = candidate or actor == '' or actor == args.actor end
if not candidate then return {'not_a_candidate', row[4]} end
if row[2] ~= args.version then return {'changed', tonumber(row[2])} end
if args.answer ~= '' then
  local woken = answer(find_run(row[5]), row[6], args.answer, {kind = 'hand', digest = args.digest, actor = args.actor})
  if woken[1] ~= 'woken' then return {'already_decided', 'closed'} end
  redis.call('HSET', key, 'status', 'decided')
end
voters[#voters + 1] = args.actor
redis.call('HSET', key, 'version', args.version + 1, 'voters', cjson.encode(voters), 'vote:' .. #voters, args.vote)
flush()
if args.answer ~= '' then return {'decided'} end
return {'recorded'}
