"""What ships for tests: ``FlowTest`` and ``assert_survives_crashes`` for flows; contracts of the ports for stores."""

from plaita.testing.actions import Advance, Approve, Cancel, Jump, Publish, Reject, Resume, Retry, WaitsFor
from plaita.testing.crashes import assert_survives_crashes
from plaita.testing.doubles import Always, Hangs, Later
from plaita.testing.flow_test import FlowRun, FlowTest
from plaita.testing.saying import NotAsExpected

__all__ = [
    "FlowTest", "FlowRun", "assert_survives_crashes", "NotAsExpected",
    "Always", "Later", "Hangs",
    "Approve", "Reject", "Publish", "Resume", "Advance", "Jump", "Cancel", "Retry", "WaitsFor",
]  # fmt: skip
