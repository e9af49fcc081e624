--! verb flags
--! class allow-oom
--! uses rows cancelling flagging
--! args n actor
-- Look for flags of others: at every held run, and in turn at n runs of each status. One look a second is enough,
-- whoever makes it. No header is read in full: its beginning says whose run it is.

local EVERY = 800
local HELD_MAX = 2000

local CHUNK = 100
local seen, ids, flags = {}, {}, {}

local function note(id)
  local raw = not seen[id] and redis.call('HGET', run_key(id), 'h')
  local tenant = raw and string.match(raw, '^%[%d+,"[^"]*","([^"]*)"')
  if not tenant then return end
  if tenant == '' then tenant = DEFAULT_TENANT end
  seen[id] = true
  ids[#ids + 1] = id
  flags[#flags + 1] = execution_cancel_key(partition((string.gsub(tenant, '\\/', '/'))), id)
end

-- Flags are rare: most chunks have none.
local function look_at_all()
  for from = 1, #ids, CHUNK do
    local to = math.min(from + CHUNK - 1, #ids)
    if redis.call('EXISTS', unpack(flags, from, to)) > 0 then
      for i = from, to do
        local run = redis.call('EXISTS', flags[i]) == 1 and find_run(ids[i])
        if run and take_flag(run) then cancel(run.id, args.actor) end
      end
    end
  end
end

local function look_through(status)
  local mark = 'flags:' .. status
  local from = redis.call('HGET', pulse_key(), mark) or '-inf'
  local page = redis.call('ZRANGEBYSCORE', by_status_key(status), from, '+inf', 'WITHSCORES', 'LIMIT', 0, args.n)
  for i = 1, #page, 2 do note(page[i]) end
  redis.call('HSET', pulse_key(), mark, #page == 2 * args.n and '(' .. page[#page] or '-inf')
end

local last = tonumber(redis.call('HGET', pulse_key(), 'flags') or 0)
if now >= last and now - last < EVERY then return 0 end
redis.call('HSET', pulse_key(), 'flags', string.format('%d', now))
for _, member in ipairs(redis.call('ZRANGE', held_key(), 0, HELD_MAX - 1)) do
  note(string.match(member, '|([^|]*)$'))
end
for _, status in ipairs({'queued', 'running', 'suspended'}) do look_through(status) end
look_at_all()
flush()
return 1
