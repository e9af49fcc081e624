--! fragment publishing
--! uses rows match deferring
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

-- The first waits, decided at once: the next cursor (nil when nothing is left), how many it reached and resolved.
local function fan_out(event)
  write_indexes()
  note_newest(typed_key(event.type), event.number)
  local found = listeners(event, 0, LIMITS.chunk)
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

-- So many waits after the cursor: the next one. What can be deferred is, of others there are fewer at a time.
local function fan_further(event, cursor, most)
  write_indexes()
  note_newest(typed_key(event.type), event.number)
  local found = listeners(event, cursor, most)
  local count = math.min(#found, most)
  local members, decided, notes = {}, 0, {coming = {}, going = {}}
  for i = 1, count do members[i] = cjson.decode(found[i][2]) end
  local deferred = DEFERRED.among(members)
  for i, at in ipairs(members) do
    if not deferred[at[1]] and not DEFERRED.note(notes, at[1], at[2], event, found[i][2]) then
      if decided == LIMITS.chunk then
        count = i - 1
        break
      end
      local run = find_run(at[1])
      match(run, find_wait(run, at[2]))
      decided = decided + 1
    end
  end
  DEFERRED.write(notes)
  return count > 0 and (count == most or count < #members) and found[count][1] or nil
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
  local cursor, matched, woken = fan_out(event)
  if cursor then
    redis.call('HSET', event_key(number), 'fan', 1)
    push_out({'event', number, cursor}, '')
  end
  if matched > 0 then redis.call('HSET', event_key(number), 'matched', matched, 'woken', woken) end
  return {id, number, matched, woken, cursor and 1 or 0, 0}
end
