--! verb wake
--! class deny-oom
--! uses rows answering
--! args id wait data digest actor
-- A person, a callback or a message answers by wait id.
local by = {kind = 'hand', digest = args.digest, actor = args.actor}
local answered = answer(find_run(args.id), args.wait, args.data, by)
flush()
return answered
