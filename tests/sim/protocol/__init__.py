"""The protocol as an executable model, and its checker."""
