"""The documented programs: their flags become the variables of this process, and a command of ours does the work."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from plaita import app
from plaita.base.errors import InputError, PlaitaError
from plaita.base.spelling import suggest
from plaita.cli.failing import FAILED, USAGE, complain, report
from plaita.cli.screen import note, say
from plaita.cli.streams import open_streams
from plaita.cli.turning import turn
from plaita.runtime.bridging import bridge
from plaita.settings import Settings

STORE: Final = "PLAITA_STORE"


@dataclass(frozen=True, slots=True)
class Flag:
    """One documented flag. ``variable`` is what it sets; without one it has no meaning here, and ``instead`` says why.

    ``choices`` are the values that can be served; ``value`` is what a flag that takes none stands for.
    """

    name: str
    variable: str = ""
    instead: str = ""
    choices: tuple[str, ...] = ()
    value: str | None = None


@dataclass(slots=True)
class Given:
    """A command line as far as it is understood: values by variable, flags by variable, and everything wrong."""

    values: dict[str, str] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    idle: list[Flag] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


_IN_REDIS: Final = ("redis",)
_ONE_STORE: Final = "everything is in the one store of --redis-url"
_KEPT: Final = "definitions are kept by their hash, so that none is ever out of date"
_DISK: Final = "a worker does not look at the disk; let its supervisor do it"
_SEEN: Final = "a worker is announced in the store as long as it lives"

WORKER: Final = (
    Flag("--redis-url", STORE),
    Flag("--queue-name", "PLAITA_QUEUE_NAME"),
    Flag("--consumer-group", "PLAITA_CONSUMER_GROUP"),
    Flag("--dlq-key", "PLAITA_DLQ_KEY"),
    Flag("--claim-min-idle-ms", "PLAITA_CLAIM_MIN_IDLE_MS"),
    Flag("--lease-ttl-seconds", "PLAITA_LEASE_TTL_SECONDS"),
    Flag("--max-deliveries", "PLAITA_MAX_DELIVERIES"),
    Flag("--concurrency", "PLAITA_WORKER_CONCURRENCY"),
    Flag("--metrics-port", "PLAITA_METRICS_PORT"),
    Flag("--metrics-host", "PLAITA_METRICS_HOST"),
    Flag("--alert-webhook", "PLAITA_ALERT_WEBHOOK"),
    Flag("--min-free-disk-gib", instead=_DISK),
    Flag("--disk-guard-path", instead=_DISK),
    Flag("--quiet", "PLAITA_LOG_LEVEL", value="WARNING"),
    Flag("--execution-storage-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--flow-storage-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--event-bus-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--database-url", instead=_ONE_STORE),
    Flag("--consumer-name", instead="a process names itself, so that no two have one name"),
    Flag("--use-event-bus", instead="the store matches events", value=""),
    Flag("--no-event-bus", instead="the store matches events", value=""),
    Flag("--cache-size", instead=_KEPT),
    Flag("--cache-ttl", instead=_KEPT),
    Flag("--enable-registry", "PLAITA_WORKER_REGISTRY", value="1"),
    Flag("--no-registry", "PLAITA_WORKER_REGISTRY", value="0"),
    Flag("--registry-ttl", instead=_SEEN),
    Flag("--heartbeat-interval", instead=_SEEN),
    Flag("--read-block-ms", instead="a worker hears at once that there is something to do"),
    Flag("--langfuse", instead="write a FlowCallback for tracing", value=""),
)
"""Flags of ``python -m plaita.server.flow_worker``."""


FILTER: Final = (
    Flag("--redis-url", STORE),
    Flag("--queue-name", "PLAITA_QUEUE_NAME"),
    Flag("--execution-storage-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--subscription-storage-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--event-bus-type", instead=_ONE_STORE, choices=_IN_REDIS),
    Flag("--database-url", instead=_ONE_STORE),
    Flag("--event-type", instead="every type is heard, as every worker does"),
)
"""Flags of ``python -m plaita.server.event_filter``."""


SERVICES: Final = {
    "delay_service": (True, "every worker fires the delays of its store"),
    "approval_service": (True, "approvals are tasks of the store: plaita inbox, plaita approve"),
    "schedule_service": (False, "plaita start from cron, with an --id for each occurrence"),
    "redis_queue_service": (False, "put messages into the stream of tasks as resumes of their wait"),
    "http_callback_service": (False, "answer the wait with plaita resume, or publish an event that it waits for"),
}
"""Services of ``python -m plaita.server.services``: whether their work is done without them, and what to do."""


def read_flags(known: Sequence[Flag], arguments: Sequence[str]) -> Given:
    """Read a command line: ``--name value`` or ``--name=value``, the last one of a name counts."""
    given, rest, by_name = Given(), list(arguments), {flag.name: flag for flag in known}
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        flag = by_name.get(name)
        if flag is None:
            given.problems.append(f"{name}: there is no such flag{_hint(name, by_name)}")
            continue
        if flag.value is not None:
            value = flag.value
        elif not equals:
            if not rest or rest[0].startswith("--"):
                given.problems.append(f"{name}: needs a value")
                continue
            value = rest.pop(0)
        _take(given, flag, value)
    return given


def _take(given: Given, flag: Flag, value: str) -> None:
    if flag.choices and value not in flag.choices:
        given.problems.append(f"{flag.name}: {value!r} is not {' or '.join(flag.choices)}; {flag.instead}")
    elif flag.variable:
        given.values[flag.variable], given.flags[flag.variable] = value, flag.name
    elif flag not in given.idle:
        given.idle.append(flag)


def _hint(name: str, known: dict[str, Flag]) -> str:
    hint = suggest(name, known)
    return f"; {hint}" if hint else ""


def enter(module: str, known: Sequence[Flag], arguments: Sequence[str]) -> int | None:
    """Make the flags those of this process. The exit code when it ends here: asked for help, or something is wrong.

    Everything that is wrong is said at once. A flag without meaning is said once, with what takes its place.
    """
    open_streams()
    if not {"-h", "--help"}.isdisjoint(arguments):
        say(f"usage: python -m {module} [FLAG VALUE]...\n")
        for flag in known:
            say(f"  {flag.name:28} {flag.variable or 'has no effect: ' + flag.instead}")
        return 0
    given = read_flags(known, arguments)
    variables, problems = dict[str, str](), given.problems
    try:
        variables = app.as_program(given.values)
    except InputError as e:
        problems.append(_in_flags(f"{e.path}: {e.reason}", given.flags))
    if problems:
        complain("; ".join(problems), f"python -m {module} --help")
        return USAGE
    for flag in given.idle:
        note(f"{flag.name} has no effect: {flag.instead}")
    app.become(variables)
    return None


def _in_flags(text: str, flags: dict[str, str]) -> str:
    for variable, name in flags.items():
        text = text.replace(variable, name)
    return text


def flow_worker(arguments: Sequence[str] | None = None) -> int:
    """``python -m plaita.server.flow_worker``: a worker, as ``plaita worker`` is one."""
    from plaita.cli.main import answer

    code = enter("plaita.server.flow_worker", WORKER, sys.argv[1:] if arguments is None else arguments)
    return answer(["worker"]) if code is None else code


def event_filter(arguments: Sequence[str] | None = None) -> int:
    """``python -m plaita.server.event_filter``: gives published events to the executions that wait for them."""
    code = enter("plaita.server.event_filter", FILTER, sys.argv[1:] if arguments is None else arguments)
    if code is not None:
        return code
    settings = app.read_settings()
    try:
        turn(_bridge(settings))
    except PlaitaError as e:
        return report(e, as_json=False, debug=False)
    return 0


def services(arguments: Sequence[str] | None = None) -> int:
    """``python -m plaita.server.services TYPE``: says who does that work here. Exit 1: nobody does yet."""
    given = [word for word in (sys.argv[1:] if arguments is None else arguments) if not word.startswith("-")]
    found = SERVICES.get(given[0]) if given else None
    if found is None:
        complain(f"name one of {', '.join(SERVICES)}", "python -m plaita.server.services TYPE")
        return USAGE
    is_done, how = found
    if is_done:
        say(f"{given[0]} is not needed: {how}")
        return 0
    complain(f"{given[0]} is not available in this release", how)
    return FAILED


async def _bridge(settings: Settings) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await bridge(settings, stop)
