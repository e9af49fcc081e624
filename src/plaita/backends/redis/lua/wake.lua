--! verb wake
--! class deny-oom
--! uses rows answering
--! args id wait data digest actor
-- A person, a callback or a message answers by wait id.
local answered = answer(find_run(args.id), args.wait, args.data, {kind = 'hand', digest = args.digest, actor = args.actor})
flush()
return answered
