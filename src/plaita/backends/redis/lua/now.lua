--! verb now
--! class allow-oom
--! args
-- The store's time.
return now
