"""``python -m plaita.server.event_filter``, and the filter inside programs.

Workers on Redis hear published events by themselves; the program is for an installation that wants it apart.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from plaita.base.moved import from_homes

if TYPE_CHECKING:
    from plaita.server.documented.filtering import EventFilter

__all__ = ["DEFAULT_QUEUE_NAME", "EventFilter", "main"]

DEFAULT_QUEUE_NAME: Final = "plaita:flow:queue"
__getattr__: Any = from_homes(
    "plaita.server.event_filter", {"plaita.server.documented.filtering": ("EventFilter",)}
)  # fmt: skip


def main() -> None:
    """Run the program with the arguments of this process."""
    # By name: the command line is a layer above, and this module imports nothing from there.
    sys.exit(import_module("plaita.cli.programs").event_filter())


if __name__ == "__main__":
    main()
