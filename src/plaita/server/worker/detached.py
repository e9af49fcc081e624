"""Branches nobody joins become runs of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from plaita.base.json import encode
from plaita.engine.effects import Detached
from plaita.ports.runs import Header, Spawn, Submission
from plaita.ports.values import RunId


def spawns_of(header: Header, detached: Sequence[Detached]) -> tuple[Spawn, ...]:
    """The submissions of detached branches; the same branch of the same visit always has the same id."""
    return tuple(_spawn(header, branch) for branch in detached)


def _spawn(header: Header, branch: Detached) -> Spawn:
    data = encode(branch.document)
    mark = hashlib.blake2b(f"{header.incarnation}{branch.key}".encode(), digest_size=6).hexdigest()
    digest = hashlib.sha256(data + header.closure.encode()).hexdigest()
    submission = Submission(
        RunId(f"{header.run_id}.{mark}"),
        digest,
        data,
        header.flow_id,
        header.closure,
        header.flow_version,
        branch.entry,
        header.tenant,
        queue=header.queue,
        imports=header.imports,
    )
    return Spawn(submission, None)
