"""Documents of nodes, one function a type. Fields are those of the reference; ``extra`` takes any other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from plaita.dsl.builder import FlowBuilder

NodeSpec: TypeAlias = dict[str, Any]
"""A node as a document. Child flows in it may be builders."""
Child: TypeAlias = "FlowBuilder | dict[str, Any]"

OPERATORS: Final = {
    "==": "eq", "=": "eq", "!=": "ne", "<>": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "not in": "notIn",
    "not_in": "notIn", "notin": "notIn", "not contains": "notContains", "not_contains": "notContains",
}  # fmt: skip


def node(type: str, id: str, **fields: Any) -> NodeSpec:
    """A node of any type; fields that are ``None`` are left out."""
    return {"type": type, "id": id, **{key: value for key, value in fields.items() if value is not None}}


def start(id: str = "start", next: str | None = None, **extra: Any) -> NodeSpec:
    """The entry."""
    return node("start", id, next=next, **extra)


def end(
    id: str = "end", output: Any = None, result_type: str = "success", error: dict[str, Any] | None = None, **extra: Any
) -> NodeSpec:
    """An end: ``output`` is the result; ``result_type="error"`` fails with ``error``: ``{"code", "message"}``."""
    return node("end", id, output=output, resultType=result_type, error=error, **extra)


def assignment(id: str, output: Any, next: str | None = None, output_type: Any = None, **extra: Any) -> NodeSpec:
    """Computes ``output``."""
    return {**node("assignment", id, next=next, outputType=output_type, **extra), "output": output}


def if_(
    id: str,
    condition: Any,
    next: str | None = None,
    else_next: str | None = None,
    *,
    then: str | None = None,
    else_: str | None = None,
    **extra: Any,
) -> NodeSpec:
    """Goes to ``then`` (or ``next``) when the condition holds, else to ``else_`` (or ``else_next``)."""
    yes, no = next if then is None else then, else_next if else_ is None else else_
    return node("if", id, condition=condition, next=yes, else_next=no, **extra)


def switch(id: str, branches: list[dict[str, Any]], **extra: Any) -> NodeSpec:
    """Goes to the first of the branches (``branch(…)``) whose condition holds, else to the default one."""
    return node("switch", id, branches=branches, **extra)


def branch(name: str, next: str, condition: Any = None, priority: int = 0, is_default: bool = False) -> dict[str, Any]:
    """A branch of ``switch``."""
    found = {"name": name, "next": next, "priority": priority}
    if condition is not None:
        found["condition"] = condition
    return {**found, "isDefault": True} if is_default else found


def case(id: str, target: Any, cases: list[dict[str, Any]], default: str | None = None, **extra: Any) -> NodeSpec:
    """Goes where ``{"id": node, "value": value}`` says for a value that equals ``target``, else to ``default``."""
    return {**node("case", id, cases=cases, default=default, **extra), "target": target}


def loop(
    id: str, collection: Any, child_flow: Child, next: str | None = None, condition: Any = None, **extra: Any
) -> NodeSpec:
    """Runs the child flow for each item; ``condition`` is asked after each round. The result is the last round's."""
    return node("loop", id, collection=collection, childFlow=child_flow, next=next, condition=condition, **extra)


def map(
    id: str,
    collection: Any,
    child_flow: Child,
    next: str | None = None,
    concurrent: bool = False,
    max_concurrent: int | None = None,
    **extra: Any,
) -> NodeSpec:
    """One result for each item."""
    found = node("map", id, collection=collection, childFlow=child_flow, next=next, **extra)
    if concurrent:
        found["concurrent"] = True
    if max_concurrent is not None:
        found["maxConcurrent"] = max_concurrent
    return found


def filter(id: str, collection: Any, child_flow: Child, next: str | None = None, **extra: Any) -> NodeSpec:
    """The items for which the child flow gives something true."""
    return node("filter", id, collection=collection, childFlow=child_flow, next=next, **extra)


def find(id: str, collection: Any, child_flow: Child, next: str | None = None, **extra: Any) -> NodeSpec:
    """The first item for which the child flow gives something true."""
    return node("find", id, collection=collection, childFlow=child_flow, next=next, **extra)


def reduce(
    id: str, collection: Any, child_flow: Child, next: str | None = None, initial: Any = None, **extra: Any
) -> NodeSpec:
    """Folds the items: the child flow gets ``first`` (so far) and ``second`` (the item)."""
    return node("reduce", id, collection=collection, childFlow=child_flow, next=next, initial=initial, **extra)


def while_(
    id: str,
    condition: Any,
    child_flow: Child,
    next: str | None = None,
    max_iterations: int | None = None,
    **extra: Any,
) -> NodeSpec:
    """Runs the child flow while the condition holds; ``$LOOP-ITEM`` is the round before, ``$LOOP-INDEX`` counts."""
    fields = {"condition": condition, "childFlow": child_flow, "next": next, "maxIterations": max_iterations}
    return node("while", id, **fields, **extra)


def child(id: str, input: Any, child_flow: Child, next: str | None = None, **extra: Any) -> NodeSpec:
    """Runs the child flow once; with ``input=None`` it sees the input of the flow around it."""
    return node("child", id, input=input, childFlow=child_flow, next=next, **extra)


def reference(
    id: str, input: Any = None, child_flow: Child | str | None = None, next: str | None = None, **extra: Any
) -> NodeSpec:
    """Runs another flow in a scope of its own: ``child_flow`` or ``flow_id`` is its id, or the flow itself."""
    if isinstance(child_flow, str):
        return node("reference", id, flowId=child_flow, input=input, next=next, **extra)
    return node("reference", id, input=input, childFlow=child_flow, next=next, **extra)


def parallel(
    id: str,
    branches: list[dict[str, Any]],
    next: str | None = None,
    mode: str = "thread",
    join_branches: list[str] | None = None,
    is_conditional: bool = False,
    **extra: Any,
) -> NodeSpec:
    """Runs branches (``parallel_branch(…)``) at once; the result has one key for each."""
    found = node("parallel", id, branches=branches, mode=mode, next=next, joinBranches=join_branches, **extra)
    return {**found, "isConditional": True} if is_conditional else found


def parallel_branch(name: str, flow: Child, input: Any = None, condition: Any = None) -> dict[str, Any]:
    """A branch of ``parallel``."""
    found = {"name": name, "flow": flow, "input": input, "condition": condition}
    return {key: value for key, value in found.items() if value is not None}


def code(id: str, language: str, code: str, input: Any = None, next: str | None = None, **extra: Any) -> NodeSpec:
    """Runs a script that defines ``run(input)``."""
    return node("code", id, language=language, code=code, input=input, next=next, **extra)


def http(
    id: str,
    method: str,
    url: str,
    next: str | None = None,
    headers: dict[str, Any] | None = None,
    body: Any = None,
    timeout: Any = None,
    error_handler: Any = None,
    **extra: Any,
) -> NodeSpec:
    """Sends a request; the result is ``{data, status, statusText, headers}``."""
    fields = {"headers": headers, "body": body, "timeout": timeout, "errorHandler": error_handler, "next": next}
    return node("http", id, method=method, url=url, **fields, **extra)


def event(id: str, event_type: str, event_filter: dict[str, Any] | None = None, **extra: Any) -> NodeSpec:
    """Waits for an event."""
    return node("event", id, eventType=event_type, eventFilter=event_filter, **extra)


def delay(id: str, delay_seconds: Any, next: str | None = None, **extra: Any) -> NodeSpec:
    """Waits for a time."""
    return node("delay", id, delaySeconds=delay_seconds, next=next, **extra)


def approval(id: str, title: Any, approvers: Any = None, next: str | None = None, **extra: Any) -> NodeSpec:
    """Waits for the decision of a person."""
    return node("approval", id, approvalTitle=title, approvers=approvers, next=next, **extra)


def mock(id: str, value: Any, next: str | None = None, **extra: Any) -> NodeSpec:
    """Gives a value as it is written: nothing in it is evaluated."""
    return {**node("mock", id, next=next, **extra), "value": value}


def cond(field: Any, operator: str, value: Any = None) -> dict[str, Any]:
    """A condition; the operator may be a sign: ``cond("$INPUT.age", ">=", 18)``."""
    return {"field": field, "operator": OPERATORS.get(operator, operator), "value": value}


def cond_group(relation: str, conditions: list[Any]) -> dict[str, Any]:
    """``and`` or ``or`` of conditions and groups."""
    return {"relation": relation, "conditions": conditions}


def error_handler(
    strategy: str = "abort",
    retry_times: int | None = None,
    default_value: Any = None,
    error_code: int | str | None = None,
    error_message: str | None = None,
) -> dict[str, Any]:
    """What a node does about its failure, for the fields ``errorHandler`` and ``timeoutHandler``."""
    fields = {"retryTimes": retry_times, "defaultValue": default_value, "code": error_code, "message": error_message}
    return {"strategy": strategy, **{key: value for key, value in fields.items() if value is not None}}
