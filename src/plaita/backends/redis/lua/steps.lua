--! fragment steps
-- A step as it comes in the arguments.

local function records(list, names)
  local found = {}
  for i = 1, #list, #names do
    local record = {}
    for j, name in ipairs(names) do record[name] = list[i + j - 1] end
    found[#found + 1] = record
  end
  return found
end

local ARM = {'id', 'kind', 'node', 'address', 'type', 'keyed', 'key', 'by_filter', 'reuse', 'deadline', 'task', 'spec',
  'approvers', 'wanted'}

local function read_arms(list)
  local arms = records(list, ARM)
  for _, arm in ipairs(arms) do
    arm.key = arm.keyed ~= '' and arm.key
    arm.by_filter, arm.reuse = arm.by_filter ~= '', arm.reuse ~= ''
    arm.deadline = tonumber(arm.deadline) or false
    arm.task = arm.task ~= '' and arm.task
  end
  return arms
end

local CLOSING = {'wait', 'why', 'event'}
local SPAWN = {'wait', 'id', 'incarnation', 'facts', 'digest', 'input'}

-- The arguments themselves, as a step.
local function read_step()
  local step = args
  step.generation, step.seq, step.ack = tonumber(step.generation), tonumber(step.seq), tonumber(step.ack)
  step.progress = step.progress ~= ''
  step.closes, step.arms, step.spawns = records(step.closes, CLOSING), read_arms(step.arms), records(step.spawns, SPAWN)
  for _, closing in ipairs(step.closes) do closing.event = tonumber(closing.event) end
  for _, child in ipairs(step.spawns) do child.wait = child.wait ~= '' and child.wait end
  return step
end
