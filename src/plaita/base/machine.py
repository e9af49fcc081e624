"""The machine this process runs on."""

from __future__ import annotations

import socket
from typing import Final

_OUTSIDE: Final = ("192.0.2.1", 9)
"""An address of a network for documentation: nothing is sent there."""


def host_address() -> str:
    """``NAME/ADDRESS``: the host name and the address that other machines see, as far as it is known without asking."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_OUTSIDE)
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    return f"{socket.gethostname()}/{address}"
