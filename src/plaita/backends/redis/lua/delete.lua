--! verb delete
--! class allow-oom
--! uses rows burying
--! args id
-- Only an ended run goes; the tombstone refuses late starts, the generation goes on growing.
local run = find_run(args.id)
if not run then return {'no_run'} end
if not TERMINAL[run.status] then return {'not_terminal', run.status} end
bury(run)
return {'deleted', run.id}
