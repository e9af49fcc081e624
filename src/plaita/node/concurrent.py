"""``parallel``: several sub-flows at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plaita.base.spelling import suggest
from plaita.engine.fans import Fan
from plaita.engine.kinds import Branches, BranchPlan
from plaita.node.basic import Node
from plaita.node.loop import check_branch_error, room_of
from plaita.node.spelling import either
from plaita.node.subflow import read_sub_flow

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink

MODES = ("thread", "process", "coroutine")


class ParallelBranch(BaseModel):
    """One branch. ``condition`` counts only with ``isConditional``; without ``input`` it inherits ``$INPUT``."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, arbitrary_types_allowed=True, defer_build=True)

    name: str
    flow: Any = Field(None, validation_alias=either("flow", "child_flow"))
    input: Any = None
    condition: Any = None
    next: Any = None
    label: str | None = None
    desc: str | None = None
    priority: int = 0
    is_default: bool = Field(False, validation_alias=either("is_default"))

    @field_validator("flow", mode="before")
    @classmethod
    def _flow(cls, value: Any) -> Any:
        return read_sub_flow(value)


class Parallel(Node):
    """Runs its branches at once and gives ``{name: result}`` in declaration order.

    ``joinBranches`` names the branches to wait for (absent or empty: all); the others become executions of their own.
    ``onBranchError``: ``fail`` cancels the siblings, ``collect`` puts ``{"error": {…}}`` in the branch's place.
    ``mode`` is accepted and has no effect.
    """

    node_type: ClassVar[str] = "parallel"
    node_name: ClassVar[str] = "Parallel"
    builtin: ClassVar[bool] = True

    branches: list[ParallelBranch] = []
    is_conditional: bool = False
    mode: str = "thread"
    join_branches: list[str] | None = None
    on_branch_error: str = "fail"
    max_concurrent: Any = None

    @field_validator("mode")
    @classmethod
    def _mode(cls, value: str) -> str:
        if value not in MODES:
            raise ValueError(f"{value!r} is none of {', '.join(MODES)}")
        return value

    @field_validator("on_branch_error")
    @classmethod
    def _on_branch_error(cls, value: str) -> str:
        return check_branch_error(value)

    def sub_flows(self) -> Iterator[tuple[str, Any, str | None]]:
        for i, branch in enumerate(self.branches):
            yield f"branches[{i}].flow", branch.flow, branch.name

    def link(self, link: NodeLink) -> None:
        self._check_names(link)
        joined = set(self.join_branches or [b.name for b in self.branches])
        plans: list[BranchPlan] = []
        for i, branch in enumerate(self.branches):
            field = f"branches[{i}]"
            if branch.flow is None:
                link.report("branch_flow_missing", field, f"branch {branch.name!r} needs a flow")
                continue
            value = None if branch.input is None else link.value(branch.input, f"{field}.input")
            test = None
            if self.is_conditional and branch.condition is not None:
                test = link.condition(branch.condition, f"{field}.condition")
            graph = branch.flow.link_under(link, f"{field}.flow", branch.name)
            plans.append(BranchPlan(branch.name, graph, value, test, branch.name in joined))
        room = room_of(link, self.max_concurrent)
        host = Fan(Branches(plans), collects=self.on_branch_error == "collect", room=room)
        link.cn.host = host
        link.cn.step = host.step(link.cn)

    def _check_names(self, link: NodeLink) -> None:
        seen: set[str] = set()
        for i, branch in enumerate(self.branches):
            if branch.name in seen:
                text = f"branch {branch.name!r} is declared twice: one result would be lost"
                link.report("duplicate_branch", f"branches[{i}].name", text)
            seen.add(branch.name)
        for i, name in enumerate(self.join_branches or ()):
            if name not in seen:
                text = f"joinBranches names {name!r}, which is no branch of this node"
                link.report("unknown_branch", f"join_branches[{i}]", text, hint=suggest(name, seen))
