"""The services of the Redis fleet come later; here timers are part of the store."""
