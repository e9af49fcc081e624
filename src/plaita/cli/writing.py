"""Files that a command makes."""

from __future__ import annotations

import os
from pathlib import Path

from plaita.base.errors import Conflict, Unavailable


def write_file(path: Path, data: bytes, source: Path) -> None:
    """Write what was made of ``source``: whoever reads meanwhile sees the old file or the new one.

    A pipe or a device is written to and stays what it is. Raises ``Conflict`` when ``path`` is the source itself, and
    ``Unavailable`` when it cannot be written.
    """
    try:
        if path.exists() and source.exists() and path.samefile(source):
            raise Conflict(f"{path} is the source itself", "name another file with -o")
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace(path, data)
    except (OSError, ValueError) as e:
        raise Unavailable(f"{path} cannot be written: {getattr(e, 'strerror', None) or e}", "check the path") from None


def _replace(path: Path, data: bytes) -> None:
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
