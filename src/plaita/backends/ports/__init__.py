"""The documented ports over rows: each method is one verb handed to a gate."""
