"""What an operator should know of the server: looked up, measured, said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final

from plaita.backends.redis.greeting import POLICY
from plaita.backends.redis.mistyped import mistyped
from plaita.backends.redis.talk import Talk
from plaita.base.clock import Clock, SystemClock
from plaita.base.errors import Unavailable
from plaita.ports.backend import Finding, Health

TRIPS: Final = 20
SLOW_MS: Final = 50.0
"""Above that a look takes so long that leases are renewed late when it is not alone."""
FULL: Final = (0.8, 0.95)
"""Of the memory that the server may use: from the first on it is a warning, from the second on a failure."""
CROWDED: Final = 0.9
NAMED_MAX: Final = 10
"""So many keys of another type are named."""

Info = Mapping[str, str]


async def examine(talk: Talk, clock: Clock | None = None) -> list[Finding]:
    """Reads only. A user who may not ask is told what stays unknown."""
    try:
        info = _read(await talk.call("INFO"))
    except Unavailable:
        info = {}
    if not info:
        return [
            Finding("server", "warning", "this user may not ask the server about itself", "ACL SETUSER … +info"),
            *await _types(talk),
            await _latency(talk, clock or SystemClock()),
        ]
    return [
        *_server(info),
        *await _types(talk),
        *_persistence(info, await _setting(talk, "appendfsync"), await _setting(talk, "save")),
        *_eviction(info),
        *_memory(info),
        *_clients(info),
        await _latency(talk, clock or SystemClock()),
    ]


async def _types(talk: Talk) -> list[Finding]:
    """Keys that hold something else; told of only when there are some."""
    found = []
    async for name, kind, expected in mistyped(talk.aside()):
        told = f"{name} is of type {kind}; the store keeps a {expected} there"
        found.append(Finding("keys", "failed", told, f"end what writes it, then RENAME {name} to look at it later"))
        if len(found) == NAMED_MAX:
            break
    return found


async def _setting(talk: Talk, name: str) -> str:
    """A parameter of the server; empty when this user may not ask."""
    try:
        found = await talk.call("CONFIG", "GET", name)
    except (Unavailable, RuntimeError):
        return ""
    return found[1].decode() if found else ""


def _read(reply: bytes) -> Info:
    lines = (line.partition(":") for line in reply.decode(errors="replace").splitlines())
    return {field: value for field, _, value in lines if value}


def _server(info: Info) -> Iterator[Finding]:
    version, replicas = info.get("redis_version", "?"), info.get("connected_slaves", "0")
    yield Finding("server", "ok", f"Redis {version}, {info.get('role', '?')} with {replicas} replicas")
    if info.get("role") == "master" and replicas != "0":
        yield Finding(
            "replicas",
            "ok",
            "a fail-over loses what the replica had not received; min-replicas-to-write bounds how much that is",
        )


def _persistence(info: Info, fsync: str, snapshots: str) -> Iterator[Finding]:
    """What an accepted commit survives; ``snapshots`` is the parameter ``save``."""
    for field, what in (("aof_last_write_status", "its log"), ("rdb_last_bgsave_status", "its snapshot")):
        if info.get(field, "ok") != "ok":
            yield Finding("durability", "failed", f"Redis could not write {what}", "look at the disk and at its log")
    if info.get("aof_enabled") == "1":
        yield _of_log(fsync)
        return
    if snapshots:
        told = f"a crash of Redis loses what was accepted since its last snapshot (save {snapshots}): appendonly is off"
    else:
        told = "a crash of Redis loses what was accepted since its last snapshot, if it takes any: appendonly is off"
    yield Finding("durability", "warning", told, "CONFIG SET appendonly yes")


def _of_log(fsync: str) -> Finding:
    match fsync:
        case "always":
            return Finding("durability", "ok", "an accepted commit survives a power cut (appendfsync always)")
        case "everysec":
            return Finding(
                "durability",
                "ok",
                "an accepted commit survives the death of Redis; a power cut may lose the last second "
                "(appendfsync everysec)",
            )
        case "no":
            return Finding(
                "durability",
                "warning",
                "an accepted commit survives the death of Redis; a power cut may lose half a minute (appendfsync no)",
                "CONFIG SET appendfsync everysec",
            )
    return Finding(
        "durability",
        "ok",
        "an accepted commit survives the death of Redis; what a power cut loses this user may not ask (appendfsync)",
    )


def _eviction(info: Info) -> Iterator[Finding]:
    policy = info.get("maxmemory_policy", "")
    if policy in ("", POLICY):
        yield Finding("eviction", "ok", "Redis evicts nothing")
    else:
        told = f"Redis may evict what is stored: maxmemory-policy is {policy}"
        yield Finding("eviction", "failed", told, f"CONFIG SET maxmemory-policy {POLICY}")


def _memory(info: Info) -> Iterator[Finding]:
    used, most = int(info.get("used_memory", "0")), int(info.get("maxmemory", "0"))
    limit = most or int(info.get("total_system_memory", "0"))
    whose = "maxmemory" if most else "the memory of its machine"
    if not limit:
        return
    told = f"Redis uses {_size(used)} of {_size(limit)} ({whose})"
    if used < FULL[0] * limit:
        yield Finding("memory", "ok", told)
        return
    what = "at the limit new starts, events and answers are refused" if most else "at the limit the system kills Redis"
    status: Health = "failed" if used >= FULL[1] * limit else "warning"
    yield Finding("memory", status, f"{told}; {what}", "plaita prune --older-than 7, or raise maxmemory")


def _clients(info: Info) -> Iterator[Finding]:
    connected, most = int(info.get("connected_clients", "0")), int(info.get("maxclients", "0"))
    if most and connected > CROWDED * most:
        told = f"{connected} of {most} connections are in use; further processes are turned away"
        yield Finding("connections", "warning", told, "CONFIG SET maxclients, or end programs that leave theirs open")


async def _latency(talk: Talk, clock: Clock) -> Finding:
    """Measured: a plain answer, and the answer of a script."""
    plain, verb = [], []
    for _ in range(TRIPS):
        begun = clock.elapsed_ms()
        await talk.call("EXISTS", talk.key("pulse"))
        between = clock.elapsed_ms()
        await talk.run("now")
        plain.append(between - begun)
        verb.append(clock.elapsed_ms() - between)
    told = f"an answer takes {median(plain):.1f} ms, a verb {median(verb):.1f} ms (the slowest {max(verb):.1f} ms)"
    if median(verb) <= SLOW_MS:
        return Finding("latency", "ok", told)
    return Finding("latency", "warning", told, "bring workers and Redis closer together; SLOWLOG GET on the server")


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
