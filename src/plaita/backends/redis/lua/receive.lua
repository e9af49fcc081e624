--! verb receive
--! class allow-oom
--! args consumer n idle state from
-- Entries of the inbox for one consumer of the documented group, oldest first: what it took before and never finished
-- (state again), what a consumer that died left, what is new: where the next look begins, and {id, fields, deliveries}
-- of each. An entry for another fleet is taken once, when it is new, and then left alone.

local FORGOTTEN_AFTER = 1440
local WINDOW = 32
local n = tonumber(args.n)
local found, there = {}, {}

local function in_group(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'NOGROUP', 1, true) then error(reply) end
  redis.call('XGROUP', 'CREATE', inbox_key(), GROUP, GROUP_BEGIN, 'MKSTREAM')
  return redis.call(...)
end

local function read(from)
  if #found >= n then return {} end
  local reply = in_group('XREADGROUP', 'GROUP', GROUP, args.consumer, 'COUNT', n - #found, 'STREAMS', inbox_key(), from)
  return reply and reply[1] and reply[1][2] or {}
end

local function add(entry, deliveries)
  local id, fields = entry[1], entry[2]
  if not fields then
    redis.call('XACK', inbox_key(), GROUP, id)
  elseif not there[id] and #found < n then
    there[id] = true
    found[#found + 1] = {id, fields, deliveries}
  end
end

local function taken_before()
  for _, entry in ipairs(read('0')) do
    local pending = redis.call('XPENDING', inbox_key(), GROUP, entry[1], entry[1], 1)[1]
    add(entry, pending and pending[4] or 1)
  end
end

-- Whether the entry is for another fleet, which is to find it as it is while that may still come.
local function is_left_alone(id, fields)
  if LIMITS.family == '' or now - tonumber(string.match(id, '^%d+')) > LIMITS.message_age then return false end
  for i = 1, #fields, 2 do
    local family = fields[i] == 'config_family' and string.match(fields[i + 1], '^%s*(cf1%-%x+)%s*$')
    if family and #family == 16 and family ~= LIMITS.family then return true end
  end
  return false
end

-- What its reader never finished. One look is at a few entries; the next begins behind them.
local function left_behind()
  local page = in_group('XPENDING', inbox_key(), GROUP, 'IDLE', args.idle, args.from, '+', WINDOW)
  for i, pending in ipairs(page) do
    if #found >= n then return '(' .. page[i - 1][1] end
    local id = pending[1]
    local entry = redis.call('XRANGE', inbox_key(), id, id)[1]
    if not entry then
      redis.call('XACK', inbox_key(), GROUP, id)
    elseif not there[id] and not is_left_alone(id, entry[2]) then
      redis.call('XCLAIM', inbox_key(), GROUP, args.consumer, args.idle, id)
      add(entry, pending[4] + 1)
    end
  end
  return #page == WINDOW and '(' .. page[WINDOW][1] or '-'
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

if args.state == 'again' then taken_before() end
local from = n > #found and left_behind() or args.from
for _, entry in ipairs(read('>')) do add(entry, 1) end
if args.state == 'new' then forget_consumers() end
return {from, found}
