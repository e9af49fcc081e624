"""What happens to a run from outside, as values: steps of a saved case, answers of a crash test.

Each is called with the test and the run. A function of the two will do as well where these are not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from plaita.base.json import Json
from plaita.testing.flow_test import FlowRun, FlowTest

Action: TypeAlias = Callable[[FlowTest, FlowRun], object]


@dataclass(frozen=True, slots=True)
class Approve:
    """A vote for it; see ``FlowRun.approve``."""

    by: str = ""
    comment: str = ""
    form: Json = None
    at: str = ""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.approve(self.by, self.comment, self.form, self.at)


@dataclass(frozen=True, slots=True)
class Reject:
    """A vote against it."""

    by: str = ""
    comment: str = ""
    form: Json = None
    at: str = ""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.reject(self.by, self.comment, self.form, self.at)


@dataclass(frozen=True, slots=True)
class Publish:
    """An event."""

    event_type: str
    data: Json = None
    key: str | None = None

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        test.publish(self.event_type, self.data, key=self.key)


@dataclass(frozen=True, slots=True)
class Resume:
    """An answer to a wait by hand."""

    data: Json = None
    at: str = ""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.resume(self.data, self.at)


@dataclass(frozen=True, slots=True)
class Advance:
    """Time passes."""

    seconds: float

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        test.advance(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Jump:
    """Time passes until the next delay or deadline is over."""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        test.jump()


@dataclass(frozen=True, slots=True)
class Cancel:
    """The run is cancelled."""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.cancel()


@dataclass(frozen=True, slots=True)
class Retry:
    """The failed run is opened again."""

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.retry()


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """Nothing happens: the run waits there, or the test fails."""

    what: str

    def __call__(self, test: FlowTest, run: FlowRun) -> None:
        run.waits_for(self.what)
