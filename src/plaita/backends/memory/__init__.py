"""A store in the memory of one process."""

from plaita.backends.memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
