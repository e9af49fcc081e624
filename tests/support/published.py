"""What an installation of the published system left on Redis, put on a server of the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "golden" / "published" / "installation.json"


def restore(client: Any) -> None:
    """Put every recorded key there."""
    for one in json.loads(RECORDED.read_text(encoding="utf-8")):
        key, value = one["key"], one["value"]
        match one["type"]:
            case "string":
                client.set(key, value)
            case "set":
                client.sadd(key, *value)
            case "zset":
                client.zadd(key, dict(value))
