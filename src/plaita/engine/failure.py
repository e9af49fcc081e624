"""Why a node or a run failed, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from plaita.base.json import Json

NODE_CODE = -520
TIMEOUT_CODE = -1
CANCEL_CODE = -4
FLOW_CODE = -500


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed node or run. ``path`` holds node ids from the root in, with the round, item or branch after its host.

    ``retryable`` says that running the node again may help; ``final`` that no handler may catch it. ``cause`` is the
    failure this one replaced, ``origin`` the exception it stands for, known only to the process where it was raised.
    """

    kind: str
    code: int | str
    message: str
    error_type: str = "node_error"
    path: tuple[str | int, ...] = ()
    retryable: bool = False
    final: bool = False
    cause: Failure | None = None
    origin: BaseException | None = field(default=None, compare=False, repr=False)

    def under(self, *steps: str | int) -> Failure:
        """The same failure seen from one level further out."""
        return replace(self, path=(*steps, *self.path))

    def at(self, node_id: str) -> Failure:
        """The failure located at a node, unless it is located already."""
        return self if self.path else replace(self, path=(node_id,))

    def renamed(self, code: int | str | None, message: str | None) -> Failure:
        """What a handler makes of it: its own code and text, the original as cause.

        What the node itself raised stays the origin; what a node below raised is that of the cause alone.
        """
        return replace(
            self,
            code=self.code if code is None else code,
            message=self.message if message is None else message,
            cause=self,
            origin=self.origin if len(self.path) <= 1 else None,
        )

    def as_json(self) -> dict[str, Json]:
        """The public shape: kind, code, message, error_type, path."""
        return {
            "kind": self.kind,
            "code": self.code,
            "message": self.message,
            "error_type": self.error_type,
            "path": list(self.path),
        }


def failure_from_json(value: dict[str, Json]) -> Failure:
    """Read what ``as_json`` wrote."""
    return Failure(value["kind"], value["code"], value["message"], value["error_type"], tuple(value["path"]))


class FailureRaised(Exception):
    """Carries a failure out of a step."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class WaitRefused(Exception):
    """A step wanted to wait in a run that cannot; no handler sees it."""

    def __init__(self, node_id: str) -> None:
        super().__init__(node_id)
        self.node_id = node_id
