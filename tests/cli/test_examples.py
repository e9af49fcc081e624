"""The examples do what their page says, each way through them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import EXAMPLES, Shell

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    return Shell(tmp_path)


@pytest.fixture
def shop() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The shop on a free port, and its process, which prints a line a request."""
    process = subprocess.Popen([sys.executable, str(EXAMPLES / "shop.py")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip(), process
    process.kill()
    process.communicate()


ORDERS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "sent": ("", {"status": "sent", "amount": 42.0}, ["POST /payments 503", "POST /payments 201", "POST /parcels 201"]),
    "refunded": ("-i to=nowhere", {"status": "refunded"}, ["POST /parcels 409", "DELETE /payments/payment-1 200"]),
    "sold out": (
        """-i 'lines=[{"sku": "unobtainium", "count": 1, "price": 1}]'""",
        {"status": "sold out", "missing": [{"sku": "unobtainium", "available": False}]},
        ["GET /stock/unobtainium 200"],
    ),
}


@pytest.mark.parametrize(("given", "wanted", "asked"), ORDERS.values(), ids=list(ORDERS))
def test_an_order_is_sent_or_paid_back_or_refused(
    shell: Shell, shop: tuple[str, subprocess.Popen[str]], given: str, wanted: dict[str, Any], asked: list[str]
) -> None:
    url, process = shop
    flow = "examples/order_fulfilment.json --input examples/order.json"
    done = shell.plaita(f"run {flow} -i shop={url} {given} --json")
    assert done.code == 0, done.err
    assert wanted.items() <= done.json["output"].items()
    process.kill()
    assert process.stdout is not None
    assert set(asked) <= set(process.stdout.read().splitlines())


def test_a_report_is_written_whole(shell: Shell) -> None:
    done = shell.plaita("run examples/nightly_report.py --json")
    assert done.json["output"] == {"report": "report.md", "regions": 2}
    assert (shell.folder / "report.md").read_text().splitlines()[-2:] == [
        "| north | 3 | 159.7 |",
        "| south | 2 | 87.75 |",
    ]
    assert not (shell.folder / "report.draft").exists()
