--! verb cancel
--! class allow-oom
--! uses rows cancelling
--! args id actor
-- The promise cancel_requested is kept by the holder's next settle, or by the next claim.
local answered = cancel(args.id, args.actor)
flush()
return answered
