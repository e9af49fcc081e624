--! verb release
--! class allow-oom
--! uses rows
--! args holder
-- The process is dead: its leases end now. The tokens stay, so that the next claim counts a takeover.
local members = redis.call('ZRANGEBYLEX', held_key(), '[' .. args.holder .. '.', '(' .. args.holder .. '/')
for _, member in ipairs(members) do
  local run = find_run(string.match(member, '|(.*)$'))
  run.due = now
end
flush()
return #members
