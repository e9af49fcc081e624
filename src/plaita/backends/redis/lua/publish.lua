--! verb publish
--! class deny-oom
--! uses rows publishing
--! args id type keyed key data
-- Store an event once; a known id is answered as the first time.
local published = publish(args.id, args.type, args.keyed ~= '' and args.key, args.data)
flush()
return published
