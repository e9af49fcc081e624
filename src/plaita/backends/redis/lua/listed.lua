--! verb listed
--! class allow-oom
--! args beyond n oldest_first statuses*
-- A page of the executions of these statuses, each with its number, all of one moment: an execution is in one of the
-- indexes, whatever becomes of it. beyond: the number before the page, '' for its beginning.

local n, ascends = tonumber(args.n), args.oldest_first ~= ''
local command = ascends and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE'
local first, last = ascends and '-inf' or '+inf', ascends and '+inf' or '-inf'
if args.beyond ~= '' then first = '(' .. args.beyond end

local found = {}
for _, status in ipairs(args.statuses) do
  local page = redis.call(command, by_status_key(status), first, last, 'WITHSCORES', 'LIMIT', 0, n)
  for i = 1, #page, 2 do found[#found + 1] = {id = page[i], number = page[i + 1]} end
end
table.sort(found, function(a, b)
  local before, after = tonumber(a.number), tonumber(b.number)
  if ascends then return before < after end
  return before > after
end)

local flat = {}
for i = 1, math.min(n, #found) do
  flat[#flat + 1] = found[i].id
  flat[#flat + 1] = found[i].number
end
return flat
