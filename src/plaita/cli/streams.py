"""The standard streams of a process that was started without some of them."""

from __future__ import annotations

import os
import sys
from typing import Final

STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_streams() -> None:
    """Give each stream that was closed to the null device: what is written there goes nowhere, and no file, connection
    or child process gets the number of a stream."""
    for name, mode in STREAMS:
        if getattr(sys, name) is None:
            # The lowest free number: those before it are taken by now.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
