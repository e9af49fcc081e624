--! verb history
--! class allow-oom
--! uses rows
--! args id after limit
-- Entries with a larger number than after: {number of the first, entry ...}, in one step, since the oldest may go.
local run = find_run(args.id)
flush()
if not run then return {0} end
local gone = run.entries - redis.call('LLEN', log_key(run.id))
local from = math.max(0, tonumber(args.after) - gone)
local entries = redis.call('LRANGE', log_key(run.id), from, from + tonumber(args.limit) - 1)
table.insert(entries, 1, gone + from + 1)
return entries
