"""Processes that move executions: the worker and the services around it."""
