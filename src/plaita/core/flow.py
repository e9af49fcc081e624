"""``Flow``: the documented model of a flow, its reading and its compilation."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from pydantic import AliasChoices, ConfigDict, Field, PrivateAttr, field_validator

from plaita.base.duration import parse_duration_ms
from plaita.base.errors import FlowLoadError, NodeNotFoundError, NotFound
from plaita.base.issues import Issue
from plaita.base.json import Json
from plaita.node.editing import Editable
from plaita.node.spelling import either, spellings

if TYPE_CHECKING:
    from plaita.core.references import Resolver
    from plaita.core.validate import Rule
    from plaita.engine.program import Program
    from plaita.node.basic import Node
    from plaita.node.registry import NodeRegistry


class Flow(Editable):
    """A flow: a graph of nodes.

    ``Flow.from_file("order.yaml").run(amount=120)`` runs it in this process. Every way of reading reports all
    problems at once as ``FlowLoadError``; warnings are in ``issues``. Fields, nodes and fields of nodes may be assigned
    later: the flow is compiled anew at its next use.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
        arbitrary_types_allowed=True,
        defer_build=True,
        validate_assignment=True,
    )

    flow_id: str | None = Field(None, validation_alias=AliasChoices("flow_id", "flowId", "id"))
    version: Any = None
    runtime: str = "python"
    input_type: Any = Field(None, validation_alias=either("input_type"))
    output_type: Any = Field(None, validation_alias=either("output_type"))
    nodes: list[Any] = Field(default_factory=list)
    author: str | None = ""
    desc: str | None = ""
    metadata: dict[str, Any] | None = Field(default_factory=dict)
    timeout: Any = ""
    global_context: dict[str, Any] | None = Field(default_factory=dict, validation_alias=either("global_context"))
    expose_env: list[str] = Field(default_factory=list, validation_alias=either("expose_env"))

    _raws: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _raw: dict[str, Any] = PrivateAttr(default_factory=dict)
    _drafted: list[Issue] = PrivateAttr(default_factory=list)
    _issues: tuple[Issue, ...] = PrivateAttr(default=())
    _located: bool = PrivateAttr(default=False)
    _program: Any = PrivateAttr(default=None)
    _nodes_registry: Any = PrivateAttr(default=None)
    _document: Any = PrivateAttr(default=None)
    _resolver: Any = PrivateAttr(default=None)
    _rules: tuple[Any, ...] = PrivateAttr(default=())
    _references: dict[tuple[str, str], Any] = PrivateAttr(default_factory=dict)
    _missing: tuple[tuple[str, str], ...] = PrivateAttr(default=())
    _compiled: Any = PrivateAttr(default=None)
    _closed: Any = PrivateAttr(default=None)

    @field_validator("version")
    @classmethod
    def _version(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise ValueError(f"a version is text, not {value!r}")

    @field_validator("timeout")
    @classmethod
    def _timeout(cls, value: Any) -> Any:
        if value not in ("", None):
            parse_duration_ms(value)
        return value

    @field_validator("expose_env")
    @classmethod
    def _expose_env(cls, value: list[str]) -> list[str]:
        for name in value:
            if not name or name != name.strip() or "*" in name:
                raise ValueError(f"{name!r} is not the name of one variable")
        return value

    @property
    def id(self) -> str | None:
        """Alias of ``flow_id``."""
        return self.flow_id

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Warnings found at load. Where they stand in the text is worked out when somebody asks."""
        document = self._document
        if document is not None and not self._located:
            self._issues, self._located = tuple(_loading().placed(i, document) for i in self._issues), True
        return self._issues

    @property
    def program(self) -> Program:
        """The compiled flow; compiled at the first use. Raises ``FlowLoadError``."""
        if self._program is None:
            _loading().compile_flow(self)
        elif self._compiled.is_stale(self):
            _loading().compile_again(self)
        if self._program is None:
            raise AssertionError("compile_flow leaves a program or raises")
        program: Program = self._program
        return program

    @classmethod
    def model_validate(
        cls,
        obj: Any,
        *,
        registry: NodeRegistry | None = None,
        strict: bool | None = None,
        resolver: Resolver | None = None,
        rules: tuple[Rule, ...] = (),
        **_: Any,
    ) -> Self:
        """A flow from its document. Raises ``FlowLoadError`` with every problem; ``strict``: warnings are problems.

        ``resolver`` finds the flows that ``reference`` nodes name: id and version in, a document or ``None`` out.
        ``rules`` are applied beside those of the installation (``plaita.core.validate.register_rule``).
        """
        if isinstance(obj, cls):
            return obj
        loading = _loading()
        flow: Self = loading.loaded(cls, obj, loading.Reading(registry, resolver, bool(strict), rules))
        return flow

    @classmethod
    def model_validate_json(
        cls, json_data: str | bytes | bytearray, *, registry: NodeRegistry | None = None, **_: Any
    ) -> Self:
        """A flow from JSON text."""
        text = json_data if isinstance(json_data, str) else bytes(json_data).decode()
        return cls.from_string(text, registry=registry)

    @classmethod
    def from_string(
        cls,
        content: str,
        *,
        registry: NodeRegistry | None = None,
        source: str = "the flow text",
        strict: bool = False,
        resolver: Resolver | None = None,
    ) -> Self:
        """A flow from JSON or YAML text; ``strict`` and ``resolver`` as for ``model_validate``."""
        loading = _loading()
        flow: Self = loading.loaded_text(cls, content, source, loading.Reading(registry, resolver, strict))
        return flow

    @classmethod
    def from_file(cls, path: str | Path, *, registry: NodeRegistry | None = None) -> Self:
        """A flow from a JSON or YAML file; flows it refers to are looked for beside it.

        Raises ``NotFound`` when the file cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as e:
            raise NotFound(f"{path}: {e.strerror or e}", "check the path") from None
        except UnicodeDecodeError:
            issue = Issue("error", "not_text", "$", "the file is not UTF-8 text")
            raise FlowLoadError([issue], str(path)) from None
        from plaita.core.references import beside

        return cls.from_string(text, registry=registry, source=str(path), resolver=beside(Path(path).parent))

    def run(self, params: dict[str, Any] | None = None, /, **kwargs: Any) -> Json:
        """Run to the end in this process and return the output.

        The input is ``params`` and the keywords (these win). Raises the documented exceptions; ``WaitNotPossible``
        when the flow reaches a waiting node.
        """
        from plaita.core.drivers import run_flow

        return run_flow(self, merge_input(params, kwargs))

    async def arun(self, params: dict[str, Any] | None = None, /, **kwargs: Any) -> Json:
        """``run`` inside a running event loop."""
        from plaita.core.drivers import arun_flow

        return await arun_flow(self, merge_input(params, kwargs))

    def debug(self, params: dict[str, Any] | None = None, /, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Run node by node: a generator of steps ``{id, type, name, result, branch, context, is_end, …}``."""
        from plaita.core.executor import FlowExecution

        steps: Iterator[dict[str, Any]] = FlowExecution().run_compatible(self, True, params, **kwargs)
        return steps

    def resolve_nodes(self, registry: NodeRegistry | None = None) -> list[Node]:
        """The nodes of this level; those that are still documents are read. Problems are told when it is compiled."""
        loading = _loading()
        loading.draft_nodes(self, registry or self._nodes_registry or loading.get_default_registry())
        return self.nodes

    def find_node_by_id(self, node_id: str) -> Node | None:
        """A node of this level."""
        return next((n for n in self.resolve_nodes() if n.id == node_id), None)

    @property
    def start_node(self) -> Node | None:
        """The entry."""
        return next((n for n in self.resolve_nodes() if n.node_type == "start"), None)

    def next_node(self, node: Node, branch: str | None = None) -> Node | None:
        """The node that follows: where ``branch`` says after a branching node, else ``next``; ``None`` when none does.

        Raises ``NodeNotFoundError`` for a name that is no node of this level.
        """
        target = branch if node.branching else node.next
        found = None if target is None else self.find_node_by_id(target)
        if target is not None and found is None:
            raise NodeNotFoundError(message=f"node {node.id!r} leads to {target!r}, which is not a node of this flow")
        return found

    def may_wait(self) -> tuple[str, ...]:
        """Where the flow may wait: addresses without rounds. Empty: it always finishes in one process."""
        return self.program.waits

    def declared_input(self) -> Any:
        """The parsed input type, ``None`` when undeclared or wrong."""
        from plaita.core.compiling import declared

        return declared(self.input_type)

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """Flows it refers to, itself or through others, that were not found: id and version (empty: the latest)."""
        _ = self.program
        return self._missing

    def look_up(self, resolver: Resolver) -> None:
        """Look for the flows it refers to there from now on."""
        self._resolver, self._program = resolver, None

    def link_apart(self, link: Any, flow_id: str) -> Any:
        """Compile as the flow a node refers to; see ``plaita.node.subflow``."""
        from plaita.core.compiling import link_apart

        return link_apart(self, link, flow_id)

    def link_under(self, link: Any, field: str, key: str | None) -> Any:
        """Compile as the sub-flow of a node; see ``plaita.node.subflow``."""
        from plaita.core.compiling import link_sub_flow

        return link_sub_flow(self, link, field, key)


FLOW_KEYS = spellings(Flow) | {"source_format"}


def _loading() -> ModuleType:
    """Reading and compiling, imported at the first flow: importing ``Flow`` itself stays cheap."""
    return import_module("plaita.core.loading")


def merge_input(params: object, kwargs: dict[str, Any]) -> dict[str, Any]:
    """One input from a mapping and keywords. Raises ``TypeError`` for anything else."""
    if params is not None and not isinstance(params, dict):
        raise TypeError(f"the input is one dict and keywords, not {type(params).__name__}")
    for reserved in ("lazy", "input_data", "inputs_data"):
        if reserved in kwargs:
            raise TypeError(f"{reserved!r} is not an input name; pass the input as a dict")
    return {**(params or {}), **kwargs}


def parse(content: str | dict[str, Any] | None, registry: NodeRegistry | None = None) -> Flow | None:
    """A flow from its text or its document; ``None`` for an empty one."""
    if not content:
        return None
    if isinstance(content, str):
        return Flow.from_string(content, registry=registry)
    return Flow.model_validate(content, registry=registry)


def parse_and_run(content: str | dict[str, Any], *args: Any, **kwargs: Any) -> Json:
    """Read a flow and run it in this process. Raises ``FlowLoadError``, also for an empty one."""
    flow = Flow.from_string(content) if isinstance(content, str) else Flow.model_validate(content)
    return flow.run(*args, **kwargs)
