"""``python -m plaita.testing.simulation SEED``: rerun one world on both stores and print what happens in it."""

from __future__ import annotations

import sys

from plaita.testing.simulation.coverage import table
from plaita.testing.simulation.story import play
from plaita.testing.simulation.world import KINDS


def main() -> int:
    """Exit status 1 when a rule was broken, or when the two stores did not go the same way."""
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.stderr.write(f"{__doc__}\n")
        return 2
    verdicts = [play(int(sys.argv[1]), kind, trace=True) for kind in KINDS]
    for verdict in verdicts:
        sys.stdout.write(f"== seed {verdict.seed} on {verdict.backend}\n{verdict.report}\n")
        sys.stdout.write(f"{table(verdict.counts.items())}\n{len(verdict.violations)} violations, {verdict.digest}\n")
    same = len({verdict.digest for verdict in verdicts}) == 1
    if not same:
        sys.stdout.write("the two stores did not go the same way\n")
    return 0 if same and not any(verdict.violations for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
