--! verb carry_on
--! class allow-oom
--! uses rows outbox
--! args entries
local done = pump(tonumber(args.entries), LIMITS.chunk_deferred)
flush()
return done
