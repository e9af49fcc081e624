--! verb submit
--! class deny-oom
--! uses rows starting
--! args id incarnation facts input digest parent closure
-- closure: the definition that has to be there; '' for one that is.
local run, there = submit({
  id = args.id, incarnation = args.incarnation, facts = args.facts, input = args.input, parent = args.parent,
  closure = args.closure ~= '' and args.closure,
}, args.digest)
flush()
if not run then return {there} end
return {'submitted', run.id, run.incarnation, there and 1 or 0}
