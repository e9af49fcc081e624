"""Processes that move executions: the worker."""
