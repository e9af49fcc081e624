"""``python -m bench [SECTION]...``: run all sections or some, print the report."""

from __future__ import annotations

import sys

from bench import beside, durable, fleet, http, inprocess, open_loop, startup, suspended, takeover

SECTIONS = {
    "inprocess": inprocess.run,
    "durable": durable.run,
    "fleet": fleet.run,
    "open_loop": open_loop.run,
    "beside": beside.run,
    "suspended": suspended.run,
    "takeover": takeover.run,
    "startup": startup.run,
    "http": http.run,
}

for name in sys.argv[1:] or SECTIONS:
    for line in SECTIONS[name]():
        print(line, flush=True)
