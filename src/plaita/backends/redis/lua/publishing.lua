--! fragment publishing
--! uses rows match finish
-- An event gets its number and reaches the first waits; any claim carries the rest on.

local function listening(place, after, before, limit)
  return redis.call('ZRANGEBYSCORE', place, string.format('(%d', after), string.format('(%d', before), 'WITHSCORES',
    'LIMIT', 0, limit)
end

-- Open waits the event may concern with after < arm < number, by arm: {arm, member}.
local function listeners(event, after, limit)
  local found = {}
  local function take(pairs_found)
    for i = 1, #pairs_found, 2 do found[#found + 1] = {tonumber(pairs_found[i + 1]), pairs_found[i]} end
  end
  take(listening(waiting_key(event.type), after, event.number, limit))
  if event.key then
    take(listening(waiting_keyed_key(event.type, event.key), after, event.number, limit))
    table.sort(found, function(a, b) return a[1] < b[1] end)
  end
  return found
end

-- One chunk: the next cursor (nil when nothing is left), how many waits it reached, how many it resolved.
local function fan_out(event, cursor)
  write_indexes()
  note_newest(typed_key(event.type), event.number)
  local found = listeners(event, cursor, LIMITS.chunk)
  local matched, woken = 0, 0
  local count = math.min(#found, LIMITS.chunk)
  for i = 1, count do
    local at = cjson.decode(found[i][2])
    local run = find_run(at[1])
    local got = match(run, find_wait(run, at[2]))
    if got then matched = matched + 1 end
    if got == 'resolved' then woken = woken + 1 end
  end
  return count == LIMITS.chunk and found[count][1] or nil, matched, woken
end

local function publish(id, kind, key, data)
  local known = redis.call('GET', event_id_key(id))
  if known then
    local row = redis.call('HMGET', event_key(known), 'matched', 'woken', 'fan')
    return {id, tonumber(known), tonumber(row[1]), tonumber(row[2]), row[3] and 1 or 0, 1}
  end
  local number = redis.call('HINCRBY', counters_key(), 'event', 1)
  local event = {number = number, type = kind, key = key}
  redis.call('SET', event_id_key(id), number)
  redis.call('HSET', event_key(number), 'id', id, 'type', kind, 'data', data, 'at', string.format('%d', now),
    'matched', 0, 'woken', 0)
  redis.call('ZADD', event_times_key(), now, number)
  redis.call('ZADD', typed_key(kind), number, number)
  if key then
    redis.call('HSET', event_key(number), 'key', key)
    redis.call('ZADD', keyed_key(kind, key), number, number)
  end
  local cursor, matched, woken = fan_out(event, 0)
  if cursor then
    redis.call('HSET', event_key(number), 'fan', 1)
    push_out({'event', number, cursor}, '')
  end
  if matched > 0 then redis.call('HSET', event_key(number), 'matched', matched, 'woken', woken) end
  return {id, number, matched, woken, cursor and 1 or 0, 0}
end
