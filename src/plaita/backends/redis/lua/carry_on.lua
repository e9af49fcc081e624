--! verb carry_on
--! class allow-oom
--! uses rows outbox
--! args entries
local done = pump(tonumber(args.entries))
flush()
return done
