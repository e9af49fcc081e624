"""``python -m plaita.server.flow_worker``: the worker under its documented name; the same as ``plaita worker``."""

from __future__ import annotations

import runpy
import sys

from plaita.base.absent import REDIS, absent

__getattr__ = absent("plaita.server.flow_worker", FlowWorker=REDIS, RedisFlowWorker=REDIS)


def main() -> None:
    """Run ``plaita worker`` with the arguments of this process."""
    sys.argv[1:1] = ["worker"]
    # By name: the command line is a layer above, and this module imports nothing from there.
    runpy.run_module("plaita.cli.main", run_name="__main__")


if __name__ == "__main__":
    main()
