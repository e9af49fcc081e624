--! fragment indexes
--! state moved={} erased={}
-- Members of indexes come and go when a step is written, those of one index by one command: a step may wake hundreds.

local AT_ONCE = 1000

-- score false: the member goes.
local function put_member(index, member, score)
  local members = moved[index]
  if not members then
    members = {}
    moved[index] = members
  end
  members[member] = score
end

-- A key that is only looked at from outside goes.
local function erase(key)
  erased[key] = true
end

-- A key that was to go gets something new: what was in it goes before.
local function begin_anew(key)
  if not erased[key] then return end
  redis.call('DEL', key)
  erased[key] = nil
end

-- One command for so many items of a list, in which pairs stay together; the answer of the last.
local function in_parts(command, key, list)
  local answer
  for i = 1, #list, AT_ONCE do
    answer = redis.call(command, key, unpack(list, i, math.min(i + AT_ONCE - 1, #list)))
  end
  return answer
end

local function write_indexes()
  for index, members in pairs(moved) do
    local coming, going = {}, {}
    for member, score in pairs(members) do
      if score then
        coming[#coming + 1] = score
        coming[#coming + 1] = member
      else
        going[#going + 1] = member
      end
    end
    in_parts('ZADD', index, coming)
    in_parts('ZREM', index, going)
  end
  local keys = {}
  for key in pairs(erased) do keys[#keys + 1] = key end
  for i = 1, #keys, AT_ONCE do redis.call('DEL', unpack(keys, i, math.min(i + AT_ONCE - 1, #keys))) end
  moved, erased = {}, {}
end
