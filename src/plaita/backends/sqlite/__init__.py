"""A store in one SQLite file, shared by the processes of one machine."""

from plaita.backends.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend"]
