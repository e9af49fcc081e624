--! fragment foreign
-- Keys that others write, or that are written for others to look at, may be of any type. What is found there says
-- nothing then, and what is shown there is not shown: no step ends in its middle because of it.

local function call_foreign(...)
  local said = redis.pcall(...)
  if type(said) ~= 'table' or not said.err then return said end
  if string.find(said.err, 'WRONGTYPE', 1, true) then return '' end
  error(said)
end
