"""Stores: the verbs written once over rows, and the rows in memory and in SQLite."""
