--! verb submit
--! class deny-oom
--! uses rows starting
--! args id incarnation facts input digest parent
local run, there = submit({
  id = args.id, incarnation = args.incarnation, facts = args.facts, input = args.input, parent = args.parent,
}, args.digest)
flush()
if not run then return {there} end
return {'submitted', run.id, run.incarnation, there and 1 or 0}
