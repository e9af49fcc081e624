"""Documented classes of programs that drive executions themselves, over the stores."""
