--! verb renew
--! class allow-oom
--! uses rows quota match headers pulse
--! args leases*
-- Extend leases from now on; an expired one that nobody took is revived. leases: id, nonce, generation, incarnation ...
contact()
local answers = {}
for i = 1, #args.leases, 4 do
  local run = find_run(args.leases[i])
  local held = run and held_under(run, args.leases[i + 1], tonumber(args.leases[i + 2]), args.leases[i + 3])
  if held then run.due = now + LIMITS.lease end
  answers[#answers + 1] = held and condition(run.seq, true, run, mailbox(run)) or {}
end
flush()
return answers
