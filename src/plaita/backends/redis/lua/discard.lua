--! verb discard
--! class allow-oom
--! uses recording
--! args letter force run actor source tenant schema
-- Throw a dead letter away. That it was there is recorded where replays are.
local gone = redis.call('XDEL', dlq_key(), args.letter) == 0
if not gone then
  redis.call('DEL', replayed_key(dlq_key(), args.letter))
  record('dlq.discard', 'ok', '')
end
return gone and 0 or 1
