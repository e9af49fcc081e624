"""What of a run is durable: flat keys, and the two directions between them and frames.

Keys (addresses are ``Frame.addr``): ``h`` the run; ``f<addr>`` cursor and timers of a frame; ``i<addr>`` an input that
cannot be derived; ``n<addr>|<node>`` a result; ``x<addr>`` roots that nodes set; and of the host or wait under the
cursor ``a<addr>`` its state, ``c<addr>`` its collection, ``m<addr>|<kid>`` one finished kid's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from plaita.base.json import Json, decode, encode
from plaita.engine import reopening
from plaita.engine.expression.scope import ABSENT
from plaita.engine.frames import BACKOFF, CALLING, CLOSED, FAILED, HOSTING, READY, WAITING, Frame
from plaita.engine.machine import Conditions, Run, root_frame
from plaita.engine.program import CNode, Program

FORMAT = 1
"""Number of this layout; a release reads its own and the one before."""

Delta = dict[str, bytes | None]


class Head(NamedTuple):
    """The key ``h``, in the order it is stored. Times are ms since 1970, ``active_ms`` is how long it was driven."""

    base_ms: int
    deadline_ms: int | None
    active_ms: int
    now_ms: int
    redrives: int
    ready: Sequence[str]
    """Addresses of the frames that go on, in order."""

    def encoded(self) -> bytes:
        return encode([FORMAT, *self])


class Cursor(NamedTuple):
    """A key ``f``, in the order it is stored: where a frame hangs, where it stands, and its timers.

    ``times`` are the deadline of the node, of the wait, of the backoff and of the sub-flow (ms since 1970).
    """

    host: str | None
    host_node: str | None
    key: str | int | None
    node: str | None
    state: str
    last: str | None
    visits: Json
    attempt: int
    times: Sequence[int | None]
    open: str | None
    stamp: Json

    def encoded(self) -> bytes:
        return encode([*self])


class UnreadableState(Exception):
    """Stored state that this release cannot restore; ``key`` says where."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key, self.reason = key, reason

    def __str__(self) -> str:
        return f"stored state {self.key!r}: {self.reason}"


def take_delta(run: Run) -> Delta:
    """What changed since the last call: key to bytes, ``None`` to remove. A removed key that is set again is set."""
    delta: Delta = dict.fromkeys(run.dels)
    run.dels.clear()
    for frame in run.touched:
        if frame.state != CLOSED:
            _write(frame, delta)
    run.touched.clear()
    ready = [frame.addr for frame in run.ready if frame.state in (READY, HOSTING)]
    delta["h"] = Head(run.base_ms, run.deadline_ms, int(run.active_ms), run.now_ms, run.redrives, ready).encoded()
    return delta


def _write(frame: Frame, delta: Delta) -> None:
    address = frame.addr
    pc, last = frame.pc, frame.last
    fresh = not frame.keys
    delta["f" + address] = Cursor(
        None if frame.host is None else frame.host.addr,
        None if frame.hnode is None else frame.hnode.id,
        frame.key,
        None if pc is None else pc.id,
        frame.state,
        None if last is None else last.id,
        frame.visits,
        frame.attempt,
        [frame.due, frame.wait_due, frame.retry_at, frame.limit],
        frame.open,
        frame.stamp,
    ).encoded()
    frame.keys.add("f" + address)
    if fresh and frame.host is not None and frame.input is not ABSENT and not _derivable(frame):
        delta["i" + address] = encode(frame.input)
        frame.keys.add("i" + address)
    if frame.extra is not None and frame.extra is not frame.extra_kept:
        delta["x" + address] = encode(frame.extra)
        frame.keys.add("x" + address)
        frame.extra_kept = frame.extra
    _write_results(frame, address, delta)
    if frame.state == HOSTING and pc is not None and pc.host is not None:
        for suffix, value in pc.host.save(frame).items():
            _put(frame, address, suffix, value, delta)
    elif frame.state == WAITING:
        _put(frame, address, "a", frame.pending, delta)


def _derivable(frame: Frame) -> bool:
    host, hnode = frame.host, frame.hnode
    if host is None or hnode is None or hnode.host is None or host.acc is None:
        return False
    return hnode.host.kid_input(host, frame.key) is not ABSENT


def _write_results(frame: Frame, address: str, delta: Delta) -> None:
    nodes = frame.nodes
    count = len(nodes)
    if count > frame.mark:
        for back, (node_id, value) in enumerate(islice(reversed(nodes.items()), count - frame.mark), 1):
            delta[f"n{address}|{node_id}"] = encode([count - back, value])
    if frame.redone:
        order = {node_id: i for i, node_id in enumerate(nodes)}
        for node_id in frame.redone:
            delta[f"n{address}|{node_id}"] = encode([order[node_id], nodes[node_id]])
        frame.redone = None
    frame.mark = count


def _put(frame: Frame, address: str, suffix: str, value: Json, delta: Delta) -> None:
    key = f"m{address}|{suffix[1:]}" if suffix[0] == "m" else suffix + address
    delta[key] = encode(value)
    frame.acc_keys.add(key)


def restore(
    program: Program,
    conditions: Conditions,
    value: Json,
    stored: Mapping[str, bytes],
    *,
    now_ms: int,
    reopened: bool = False,
) -> Run:
    """Rebuild a run from its keys; ``value`` is the run's input. Raises ``UnreadableState``.

    ``reopened``: the run ended in an error and goes on at the failed node. A failed call is issued again under its id;
    waits are armed anew and failed hosts begin anew under the next number; what is overdue gets its time again.
    """
    run = Run(program, conditions)
    head = _read(stored, "h")
    if not isinstance(head, list) or head[0] != FORMAT:
        raise UnreadableState(
            "h", f"format {head[0] if isinstance(head, list) else head!r}, this release reads {FORMAT}"
        )
    try:
        _, run.base_ms, run.deadline_ms, active_ms, run.now_ms, run.redrives, ready = head
    except ValueError:
        raise UnreadableState("h", f"{len(head)} fields") from None
    run.active_ms, run.started = float(active_ms), True
    keys = _by_frame(stored)
    frames: dict[str, Frame] = {}
    for address in sorted(keys, key=lambda a: (a.count("/"), a)):
        try:
            frames[address] = _frame(run, address, frames, value, keys[address])
        except (LookupError, TypeError, ValueError) as e:
            raise UnreadableState("f" + address, f"{type(e).__name__}: {e}") from None
    if not hasattr(run, "root"):
        raise UnreadableState("f", "the root frame is missing")
    for frame in frames.values():
        _under_way(run, frame)
    if reopened:
        reopening.reopen(run, now_ms)
    else:
        run.ready.extend(frames[address] for address in ready)
    for frame in run.frames:
        for at_ms in (frame.due, frame.wait_due, frame.retry_at, frame.limit):
            if at_ms is not None:
                run.arm(frame, at_ms)
    return run


def _read(stored: Mapping[str, bytes], key: str) -> Json:
    try:
        return decode(stored[key])
    except KeyError:
        raise UnreadableState(key, "missing") from None
    except ValueError as e:
        raise UnreadableState(key, f"not readable ({e})") from None


def _by_frame(stored: Mapping[str, bytes]) -> dict[str, dict[str, Json]]:
    frames: dict[str, dict[str, Json]] = {k[1:]: {} for k in stored if k[0] == "f"}
    for key in stored:
        if key == "h":
            continue
        address, _, rest = key[1:].partition("|")
        name = f"{key[0]}{rest}" if key[0] in "nm" else key[0]
        owner = frames.get(address)
        if owner is None:
            raise UnreadableState(key, "belongs to no frame")
        owner[name] = _read(stored, key)
    return frames


def _frame(run: Run, address: str, frames: Mapping[str, Frame], value: Json, stored: dict[str, Json]) -> Frame:
    host_addr, hnode_id, key, pc_id, state, last_id, visits, attempt, times, open_id, stamp = stored["f"]
    hnode: CNode | None = None
    if host_addr is None:
        frame = root_frame(run, value)
    else:
        host = frames.get(host_addr)
        hnode = None if host is None else host.graph.nodes.get(hnode_id)
        if host is None or hnode is None or hnode.host is None:
            raise UnreadableState("f" + address, f"node {hnode_id!r} is not in this definition")
        base = address if key is None else address.rpartition(":")[0]
        frame = Frame(run, hnode.host.graph_of(key), host, host, base)
        frame.hnode, frame.key = hnode, key
        host.kids["" if key is None else key] = frame
    frame.begin(stored.get("i", ABSENT) if hnode is not None else frame.input)
    frame.state, frame.visits, frame.attempt, frame.open = state, visits, attempt, open_id
    frame.due, frame.wait_due, frame.retry_at, frame.limit = times
    frame.stamp = None if stamp is None else (stamp[0], stamp[1], stamp[2])
    frame.pc, frame.last = _node(frame, pc_id), _node(frame, last_id)
    frame.extra = frame.extra_kept = stored.get("x")
    results = sorted((v[0], k[1:], v[1]) for k, v in stored.items() if k[0] == "n")
    frame.nodes = {node_id: result for _, node_id, result in results}
    frame.mark = len(results)
    _stored_keys(frame, address, stored)
    if state == HOSTING and frame.pc is not None and frame.pc.host is not None:
        frame.pc.host.load(frame, stored)
    elif state == WAITING:
        frame.pending = stored["a"]
    run.frames[frame] = None
    if hnode is not None and hnode.host is not None and "i" not in stored and frame.host is not None:
        frame.input = hnode.host.kid_input(frame.host, key)
    return frame


def _node(frame: Frame, node_id: str | None) -> CNode | None:
    if node_id is None:
        return None
    found = frame.graph.nodes.get(node_id)
    if found is None:
        raise UnreadableState("f" + frame.addr, f"node {node_id!r} is not in this definition")
    return found


def _stored_keys(frame: Frame, address: str, stored: dict[str, Any]) -> None:
    for name in stored:
        if name[0] in "fix":
            frame.keys.add(name + address)
        elif name[0] in "ac":
            frame.acc_keys.add(name + address)
        elif name[0] == "m":
            frame.acc_keys.add(f"m{address}|{name[1:]}")


def _under_way(run: Run, frame: Frame) -> None:
    if frame.state == CALLING and frame.open is not None:
        run.calls[frame.open] = frame
    elif frame.state == WAITING and frame.open is not None:
        run.waits[frame.open] = frame
    elif frame.state not in (READY, HOSTING, BACKOFF, FAILED):
        raise UnreadableState("f" + frame.addr, f"unknown state {frame.state!r}")
