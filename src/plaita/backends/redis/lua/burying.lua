--! fragment burying
--! uses starts mirror rows match
-- Rows of ended runs go, their ids stay used.

local function forget_task(task)
  local found = redis.call('HGET', task_key(task), 'approvers')
  if found then drop_from_inboxes(task, cjson.decode(found)) end
  redis.call('DEL', task_key(task))
end

local function bury(run)
  redis.call('HSET', grave_key(run.id), 'generation', run.generation, 'buried', string.format('%d', now))
  redis.call('PEXPIRE', grave_key(run.id), LIMITS.generation)
  if run.armed > 0 then
    for _, raw in ipairs(redis.call('HVALS', waits_key(run.id))) do
      local wait = wait_of(cjson.decode(raw))
      if wait.task then forget_task(wait.task) end
    end
  end
  for _, name in ipairs(redis.call('SMEMBERS', names_key(run.id))) do redis.call('DEL', name_key(name)) end
  redis.call('UNLINK', run_key(run.id), frames_key(run.id), waits_key(run.id), consumed_key(run.id), log_key(run.id),
    names_key(run.id))
  redis.call('ZREM', kin_key(), run.id)
  redis.call('ZREM', ended_key(), run.id)
  redis.call('ZREM', by_status_key(run.status), run.id)
  redis.call('ZREM', by_flow_key(kind_of_run(run).flow_id), run.id)
  redis.call('ZREM', by_tenant_key(run.tenant), run.id)
  if run.business_key ~= '' then redis.call('ZREM', by_key_key(run.business_key), run.id) end
  for _, tag in ipairs(run.tags) do redis.call('ZREM', by_tag_key(tag), run.id) end
  let_go_kind(run.kind)
  mirror_burial(run)
  run.gone = true
  rows[run.id] = false
end
