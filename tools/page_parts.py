"""Tables and pages of the generated reference."""

from __future__ import annotations

from collections.abc import Sequence


def table(*header: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A table; bars inside of cells are escaped."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def page(parts: list[str]) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(parts) + "\n"
