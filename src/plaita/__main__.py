"""``python -m plaita``: the command line."""

from __future__ import annotations

from plaita.cli.main import main

if __name__ == "__main__":
    main()
