--! verb frames
--! class allow-oom
--! uses framing
--! args id
-- Names and values of the frames of a run, wherever they are.
local beside = redis.call('HGETALL', frames_key(args.id))
return #beside > 0 and beside or flat(packed_frames(args.id))
