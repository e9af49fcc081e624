--! fragment tallies
-- What was let through, passed over or cut is counted under its name, for people who look.

local function tally(name, count)
  redis.call('HINCRBY', counters_key(), name, count or 1)
end
