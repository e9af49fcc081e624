--! fragment framing
--! uses indexes
-- The frames of a run: one packed value beside its header as long as they are small, else a hash of their own.

local PACKED_MAX = 1024

local function put_beside(run, put, cut)
  in_parts('HSET', frames_key(run.id), put)
  in_parts('HDEL', frames_key(run.id), cut)
end

local function flat(frames)
  local list = {}
  for name, value in pairs(frames) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
  return list
end

local function packed_frames(id)
  local packed = redis.call('HGET', run_key(id), 'f')
  return packed and cmsgpack.unpack(packed) or {}
end

local function put_frames(run, put, cut)
  if #put + #cut == 0 then return end
  if run.frames_beside then return put_beside(run, put, cut) end
  local frames = packed_frames(run.id)
  for i = 1, #put, 2 do frames[put[i]] = put[i + 1] end
  for _, name in ipairs(cut) do frames[name] = nil end
  local packed = cmsgpack.pack(frames)
  if #packed <= PACKED_MAX then
    run.frames = packed
  else
    run.frames_beside = true
    redis.call('HDEL', run_key(run.id), 'f')
    put_beside(run, flat(frames), {})
  end
end
