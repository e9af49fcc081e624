"""``python -m bench [inprocess] [durable] [fleet] [startup] [http]``: run all or some, print the report."""

from __future__ import annotations

import sys

from bench import durable, fleet, http, inprocess, startup

SECTIONS = {
    "inprocess": inprocess.run,
    "durable": durable.run,
    "fleet": fleet.run,
    "startup": startup.run,
    "http": http.run,
}

for name in sys.argv[1:] or SECTIONS:
    for line in SECTIONS[name]():
        print(line, flush=True)
