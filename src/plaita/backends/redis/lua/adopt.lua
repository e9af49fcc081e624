--! verb adopt
--! class deny-oom
--! uses rows starting settling steps
--! args id incarnation facts input digest kind a b c failed_node put* arms*
-- A new run and its first settle in one step: nobody can claim it in between. An id that exists is a conflict.
if find_run(args.id) then return {'conflict'} end
local step = {
  incarnation = args.incarnation, seq = 1, digest = 'adopt', ack = 0, progress = false, kind = args.kind, a = args.a,
  b = args.b, c = args.c, failed_node = args.failed_node, put = args.put, cut = {}, closes = {},
  arms = read_arms(args.arms), spawns = {}, history = {},
}
-- Said before anything is written, of a run that has nothing yet.
local wrong = mistake({id = args.id, armed = 0, live = {}, shut = 0, waits = {}, box = {}}, step)
if wrong then return redis.error_reply('MISTAKE ' .. wrong) end
local run, refusal = submit({
  id = args.id, incarnation = args.incarnation, facts = args.facts, input = args.input, parent = '',
}, args.digest)
if not run then return {refusal} end
run.nonce, run.generation, run.status = 'adopt.' .. run.incarnation, run.generation + 1, 'running'
set_slot(run, true)
step.nonce, step.generation = run.nonce, run.generation
settle(run, step)
flush()
return {'adopted', run.id, run.incarnation}
