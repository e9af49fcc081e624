--! verb reload
--! class allow-oom
--! uses rows headers
--! args id nonce generation incarnation
-- The header again, under a claim one already has.
local run = find_run(args.id)
if not run or not held_under(run, args.nonce, tonumber(args.generation), args.incarnation) then return {} end
return claimed(run)
