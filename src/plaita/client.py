"""``PlaitaClient`` fetches flows from a console. There is none in this release, so asking for it says so."""

from __future__ import annotations

from plaita.base.absent import CONSOLE, absent

__getattr__ = absent(
    "plaita.client",
    PlaitaClient=CONSOLE,
    PlaitaClientError=CONSOLE,
    PlaitaClientNetworkError=CONSOLE,
    PlaitaClientResponseError=CONSOLE,
    RedisConfig=CONSOLE,
)
