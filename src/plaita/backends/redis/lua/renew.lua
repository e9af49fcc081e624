--! verb renew
--! class allow-oom
--! uses rows match headers pulse
--! args leases*
-- Extend leases from now on; an expired one that nobody took is revived. leases: id, nonce, generation, incarnation ...
-- Of a lost one the answer is {seq}, or {} where that incarnation is gone.
contact()
local answers = {}
for i = 1, #args.leases, 4 do
  local run = find_run(args.leases[i])
  local held = run and held_under(run, args.leases[i + 1], tonumber(args.leases[i + 2]), args.leases[i + 3])
  local answer = {}
  if held then
    run.due = now + LIMITS.lease
    answer = condition(run.seq, true, run, mailbox(run))
  elseif run and run.incarnation == args.leases[i + 3] then
    answer = {run.seq}
  end
  answers[#answers + 1] = answer
end
flush()
return answers
