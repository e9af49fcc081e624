--! verb look
--! class allow-oom
--! uses rows indexes
--! args ids*
-- Decide what was deferred of these runs: somebody wants to see them as they are.
for _, id in ipairs(args.ids) do
  find_run(id)
  put_member(deferred_key(), id, false)
end
flush()
return #args.ids
