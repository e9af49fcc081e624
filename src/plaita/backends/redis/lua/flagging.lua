--! fragment flagging
--! uses mirror tallies
-- The documented flag by which others ask for a cancel. It is asked once: whoever finds it takes it away.

local function take_flag(run)
  local flag = execution_cancel_key(partition(run.tenant), run.id)
  if run.hidden or redis.call('DEL', flag) == 0 then return false end
  tally('cancel_flag')
  return true
end
