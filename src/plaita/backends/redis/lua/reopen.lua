--! verb reopen
--! class allow-oom
--! uses rows reopening
--! args id
local run = find_run(args.id)
if not run then return {'no_run'} end
local answer = reopen(run)
flush()
return answer
