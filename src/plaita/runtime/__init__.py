"""Durable executions from Python: ``Runtime``, and ``drive``, which moves an execution in this process."""

from plaita.runtime.runtime import Execution, HumanTask, Runtime

__all__ = ["Execution", "HumanTask", "Runtime"]
