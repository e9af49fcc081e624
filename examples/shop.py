"""A shop to call: stock, payments and parcels over HTTP, on a free port or a given one. Nothing is real.

    python examples/shop.py 8010

- ``GET /stock/SKU``: ``{"sku", "available"}``; nothing called ``unobtainium`` is ever there
- ``POST /payments``: busy (503) the first time it hears of an order, then ``{"payment", "amount"}``
- ``DELETE /payments/ID``: gives the money back
- ``POST /parcels``: ``{"parcel"}``; nobody delivers to ``nowhere`` (409)

One ``Idempotency-Key`` is one payment, however often it is sent. Every request is a line on stdout.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Shop(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    heard: ClassVar[set[str]] = set()
    payments: ClassVar[dict[str, dict[str, Any]]] = {}

    def do_GET(self) -> None:
        sku = self.path.removeprefix("/stock/")
        self._answer(200, {"sku": sku, "available": sku != "unobtainium"})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        if self.path == "/payments":
            self._pay(given, self.headers.get("Idempotency-Key", ""))
        elif given.get("to") == "nowhere":
            self._answer(409, {"error": "nobody delivers to nowhere"})
        else:
            self._answer(201, {"parcel": f"parcel-{given['order']}"})

    def do_DELETE(self) -> None:
        self._answer(200, {"refunded": self.path.rpartition("/")[2]})

    def _pay(self, given: dict[str, Any], key: str) -> None:
        if key not in self.heard:
            self.heard.add(key)
            self._answer(503, {"error": "the bank is busy"})
            return
        payment = self.payments.setdefault(
            key, {"payment": f"payment-{len(self.payments) + 1}", "amount": given["amount"]}
        )
        self._answer(201, payment)

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print(self.command, self.path, status, flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """The line of ``_answer`` is enough."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Shop)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
