--! fragment headers
--! uses rows match
-- What a holder is given of a run.

-- {id, header, kind, input, mailbox, cancel, now, takeover, packed frames}; what was changed must be written before.
-- Frames beside the header are not packed: they are read by a plain command.
local function claimed(run)
  local kind, found = redis.call('HGET', kinds_key(), run.kind), redis.call('HMGET', run_key(run.id), 'in', 'f')
  local frames = not run.frames_beside and (found[2] or '')
  return {run.id, run.raw, kind, found[1] or NO_INPUT, mailbox(run), run.cancel and 1 or 0, now, run.taken_over or 0,
    frames}
end

-- What a settle, its repetition and a renewal say of a run: {seq, held, cancel, now, mailbox}
local function condition(seq, held, run, mails)
  return {seq, held and 1 or 0, run.cancel and 1 or 0, now, mails}
end

local function held_under(run, nonce, generation, incarnation)
  return run.nonce and run.nonce == nonce and run.generation == generation and run.incarnation == incarnation
end
