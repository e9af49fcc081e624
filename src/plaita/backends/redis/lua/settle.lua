--! verb settle
--! class allow-oom
--! uses rows settling steps
--! args id nonce generation incarnation seq digest ack progress kind a b c failed_node put* cut* closes* arms* spawns* history*
local run = find_run(args.id)
if not run then return {'stale', false} end
local answer = settle(run, read_step())
if not answer.err then flush() end
return answer
