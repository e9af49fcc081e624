--! verb now
--! class allow-oom
--! uses rows
--! args
-- The store's time.
return now
