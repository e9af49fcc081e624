--! verb receive
--! class allow-oom
--! args consumer n idle state
-- Entries of the inbox for one consumer of the documented group, oldest first: what it took before and never finished
-- (state again), what a consumer that died left, what is new. Each as {id, fields, deliveries}.

local GROUP = 'plaita-workers'
local FORGOTTEN_AFTER = 1440
local n = tonumber(args.n)
local found, there = {}, {}

local function in_group(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'NOGROUP', 1, true) then error(reply) end
  redis.call('XGROUP', 'CREATE', inbox_key(), GROUP, '0', 'MKSTREAM')
  return redis.call(...)
end

local function read(from)
  if #found >= n then return {} end
  local reply = in_group('XREADGROUP', 'GROUP', GROUP, args.consumer, 'COUNT', n - #found, 'STREAMS', inbox_key(), from)
  return reply and reply[1] and reply[1][2] or {}
end

local function add(entries, is_new)
  for _, entry in ipairs(entries) do
    local id, fields = entry[1], entry[2]
    if not fields then
      redis.call('XACK', inbox_key(), GROUP, id)
    elseif not there[id] and #found < n then
      there[id] = true
      local pending = not is_new and redis.call('XPENDING', inbox_key(), GROUP, id, id, 1)[1]
      found[#found + 1] = {id, fields, pending and pending[4] or 1}
    end
  end
end

-- A process that left without a word leaves a name in the group: for a day, if what it holds is taken after a minute.
-- One that holds entries keeps it.
local function forget_consumers()
  for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', inbox_key(), GROUP)) do
    local consumer = {}
    for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
    if consumer.pending == 0 and consumer.idle > args.idle * FORGOTTEN_AFTER then
      redis.call('XGROUP', 'DELCONSUMER', inbox_key(), GROUP, consumer.name)
    end
  end
end

if args.state == 'again' then add(read('0'), false) end
local left = n > #found
  and in_group('XAUTOCLAIM', inbox_key(), GROUP, args.consumer, args.idle, '0-0', 'COUNT', n - #found)
add(left and left[2] or {}, false)
add(read('>'), true)
if args.state == 'new' then forget_consumers() end
return found
