"""Words everyone may use: errors, clock, ids, JSON, limits, issues, durations, spelling."""
