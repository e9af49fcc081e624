"""``ExecutionContext``: the roots of an execution, outside of a run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from plaita.base.errors import NotSupported
from plaita.base.ids import check_list
from plaita.base.json import Json, admit
from plaita.core.checkpoint import roots_of
from plaita.core.expression import ExpressionEvaluator
from plaita.engine.machine import Run
from plaita.engine.values import copied

DEFAULTS = {
    "express_prefix": "$", "express_input_name": "INPUT", "express_parent_name": "PARENT", "express_node_name": "NODE",
    "express_global_name": "GLOBAL", "express_environment_variable": "ENV",
}  # fmt: skip
"""Documented options that gave the roots other names; only their defaults are taken."""


def refuse_renaming(options: Mapping[str, Any]) -> None:
    """Raises ``NotSupported`` for an option that is unknown, or that would rename a root."""
    for name, value in options.items():
        if name not in DEFAULTS:
            raise NotSupported(f"there is no option {name!r}", f"options: {', '.join(DEFAULTS)}")
        if value not in (None, DEFAULTS[name]):
            raise NotSupported(f"{name} is always {DEFAULTS[name]!r} here", "write expressions with the usual roots")


class ExecutionContext(Mapping[str, Any]):
    """A documented context, ``{"$INPUT": …, "$NODE": …}``, and evaluation in it.

    ``parent`` is what ``$PARENT`` reads. Names set with ``set_scratch`` are seen by expressions and not part of
    ``to_dict``. The documented ``express_*`` names are accepted as they are by default only.
    """

    express_prefix = "$"

    def __init__(
        self,
        parent: ExecutionContext | None = None,
        *,
        event_bus: Any = None,
        evaluator: ExpressionEvaluator | None = None,
        expose_env: list[str] | None = None,
        **names: str,
    ) -> None:
        refuse_renaming(names)
        self.parent, self.event_bus, self.expose_env = (
            parent,
            event_bus,
            list(check_list(expose_env or (), "expose_env")),
        )
        self._evaluator = evaluator or ExpressionEvaluator()
        self._scratch: dict[str, Json] = {}
        self._roots: dict[str, Any] = {}
        self.clean()

    @classmethod
    def from_dict(cls, context: Mapping[str, Any], event_bus: Any = None) -> ExecutionContext:
        """A context from its saved form; a copy."""
        found = cls(event_bus=event_bus)
        found._roots |= admit(dict(context), "context")
        return found

    @classmethod
    def of_run(cls, run: Run, event_bus: Any = None) -> ExecutionContext:
        """The context of the flow itself at the end of a run."""
        found = cls(event_bus=event_bus)
        found._roots = roots_of(run)
        return found

    @property
    def context(self) -> dict[str, Any]:
        """The roots themselves."""
        return self._roots

    @property
    def execution_id(self) -> str:
        """``$EXECUTION_ID``."""
        return str(self._roots["$EXECUTION_ID"])

    @property
    def flow_id(self) -> Any:
        """``$FLOW_ID``."""
        return self._roots.get("$FLOW_ID")

    @property
    def last_node_id(self) -> Any:
        """``$LAST_NODE``."""
        return self._roots.get("$LAST_NODE")

    @property
    def last_branch(self) -> Any:
        """``$BRANCH``."""
        return self._roots.get("$BRANCH")

    def clean(self, execution_id: str | None = None) -> None:
        """Start afresh, under a given id or a new one."""
        self._scratch.clear()
        self._roots = {"$EXECUTION_ID": execution_id or secrets.token_hex(16), "EXPRESS_PREFIX": "$"}

    def child(self) -> ExecutionContext:
        """A context that reads this one as ``$PARENT``."""
        return ExecutionContext(self, event_bus=self.event_bus, evaluator=self._evaluator)

    def evaluate(self, value: Json) -> Json:
        """The value of a field. Raises ``FlowLoadError`` or, when it fails, ``EvaluationError``."""
        roots = {**self._roots, **self._scratch}
        if self.parent is not None:
            roots["$PARENT"] = self.parent.to_dict()
        return self._evaluator.evaluate(value, roots)

    def get_state(self, key: str, default: Json = None) -> Any:
        """A root, with or without ``$``."""
        name = _root(key)
        return self._scratch.get(name, self._roots.get(name, default))

    def set_state(self, key: str, value: Json) -> None:
        """Set a root; JSON only."""
        self._roots[_root(key)] = admit(value, key)

    def set_scratch(self, key: str, value: Json) -> None:
        """Set a root that is not saved."""
        self._scratch[_root(key)] = admit(value, key)

    def scratch_keys(self) -> list[str]:
        """Names set with ``set_scratch``."""
        return list(self._scratch)

    def clear_scratch(self) -> None:
        """Forget them."""
        self._scratch.clear()

    def get_global_variable(self, key: str, default: Json = None) -> Json:
        """A value of ``$GLOBAL``, here or in a parent."""
        found = (self._roots.get("$GLOBAL") or {}).get(key)
        if found is None and self.parent is not None:
            return self.parent.get_global_variable(key, default)
        return default if found is None else found

    def update_node_result(self, node: Any, result: Json) -> None:
        """Keep the result of a node, which becomes the last one."""
        node_id = node if isinstance(node, str) else node.id
        self._roots.setdefault("$NODE", {})[node_id] = admit(result, node_id)
        self._roots["$LAST_NODE"] = node_id

    def to_dict(self) -> dict[str, Any]:
        """The saved form; a copy."""
        found: dict[str, Any] = copied(self._roots)
        return found

    def __getitem__(self, key: str) -> Any:
        return self._roots[_root(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._roots)

    def __len__(self) -> int:
        return len(self._roots)


def _root(key: str) -> str:
    return key if key.startswith("$") or key == "EXPRESS_PREFIX" else f"${key}"
