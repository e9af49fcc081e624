"""``python -m plaita.server.services TYPE``: the documented command; it names who does that work here."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Run the program with the arguments of this process."""
    # By name: the command line is a layer above, and this module imports nothing from there.
    sys.exit(import_module("plaita.cli.programs").services())


if __name__ == "__main__":
    main()
