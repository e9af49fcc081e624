"""Ways to a Redis: TLS, a user with few rights, Sentinels, and what is said when there is no way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from plaita import Flow
from plaita.backends.redis import RedisBackend
from plaita.base.errors import InputError, Unavailable
from plaita.ports.processes import Process
from plaita.runtime import Runtime
from tests.servers import free_port, redis_at
from tests.support.fleet import Answer, command
from tests.support.redis_fleet import RedisFleet, all_completed, load_of
from tests.support.sentinels import copied, replicated, runtime_after

pytestmark = pytest.mark.timeout(60)

SECRET = "s3cret"
RIGHTS = (
    "~plaita:* &plaita:* &plaita:events:* +@read +@write -@dangerous "
    "+fcall +function|list +publish +subscribe +psubscribe +time +info"
)
ASKING = Flow.model_validate(
    {
        "flow_id": "asking",
        "nodes": [
            {"type": "start", "id": "s", "next": "w"},
            {"type": "event", "id": "w", "event_type": "go", "next": "e"},
            {"type": "end", "id": "e", "output": "$NODE.w.event_data"},
        ],
    }
)


def used(url: str) -> Any:
    """Let an execution wait and be answered; its output."""
    with Runtime.open(url) as runtime:
        execution = runtime.start(ASKING)
        execution.wait()
        runtime.publish_event("go", 7)
        execution.wait()
        assert runtime.ask(lambda store: store.audit()) == []
        return execution.inspect()["output"]


def doctor(folder: Path, url: str) -> Answer:
    return command(RedisFleet(folder, url=url), "doctor")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own authority for localhost."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
            str(folder / "key.pem"), "-out", str(folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def tls_port(certificates: Path) -> Iterator[int]:
    port = free_port()
    options = ("--tls-port", str(port), "--tls-auth-clients", "no", "--tls-cert-file", str(certificates / "cert.pem"))
    with redis_at(*options, "--tls-key-file", str(certificates / "key.pem")):
        yield port


def test_tls_with_an_authority_of_its_own(tls_port: int, certificates: Path) -> None:
    assert used(f"rediss://localhost:{tls_port}/0?ssl_ca_certs={certificates / 'cert.pem'}") == 7


def test_a_certificate_that_nobody_vouches_for_is_refused(tls_port: int) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        used(f"rediss://localhost:{tls_port}/0")


def test_a_certificate_for_another_host_is_refused(tls_port: int, certificates: Path) -> None:
    with pytest.raises(Unavailable, match="certificate is not valid for"):
        used(f"rediss://127.0.0.1:{tls_port}/0?ssl_ca_certs={certificates / 'cert.pem'}")


def test_a_user_with_few_rights_is_enough(tmp_path: Path) -> None:
    with redis_at() as server, redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "plaita", "on", f">{SECRET}", *RIGHTS.split())
        url = server.url.replace("unix://", f"unix://plaita:{SECRET}@")
        assert used(url) == 7
        fleet = RedisFleet(tmp_path, url=url)
        fleet.start_workers(1)
        with fleet.runtime() as runtime:
            all_completed(runtime, load_of(runtime, tmp_path, 3, 3))
            runtime.prune(1)
        fleet.stop()
        checked = doctor(tmp_path, url)
        assert checked.code == 0, checked
        denied = [entry[b"object"] for entry in client.execute_command("ACL", "LOG")]
        # What the server says of itself beyond INFO is not needed, and doctor says what it could not ask.
        assert set(denied) <= {b"client|setinfo", b"config|get"}, denied
    assert SECRET not in checked.out + checked.err


@pytest.mark.parametrize("without", [("-info",), ("-publish",), ("resetchannels",)])
def test_a_user_who_may_not_ask_for_the_version_or_send_hints_may_use_the_store(without: tuple[str, ...]) -> None:
    with redis_at() as server, redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "plaita", "on", f">{SECRET}", *RIGHTS.split(), *without)
        assert used(server.url.replace("unix://", f"unix://plaita:{SECRET}@")) == 7


@pytest.mark.parametrize("missing", ["+@read", "+@write", "+fcall", "+time"])
def test_a_right_that_is_missing_is_one_message(missing: str) -> None:
    rights = [right for right in RIGHTS.split() if right != missing]
    with redis_at() as server, redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "plaita", "on", f">{SECRET}", *rights)
        with pytest.raises(Unavailable, match="refuses this user"):
            used(server.url.replace("unix://", f"unix://plaita:{SECRET}@"))


@pytest.mark.parametrize(("user", "password"), [("plaita", "wrong"), ("", "")])
def test_a_wrong_password_is_one_message_without_the_password(tmp_path: Path, user: str, password: str) -> None:
    with redis_at("--requirepass", SECRET) as server:
        login = f"{user}:{password}@" if user else ""
        answer = doctor(tmp_path, server.url.replace("unix://", f"unix://{login}"))
    assert answer.code == 5
    assert "refuses this user" in answer.err
    assert "check user and password" in answer.err
    assert "Traceback" not in answer.err
    assert "wrong@" not in answer.err


def test_a_redis_that_is_not_there_is_one_message_at_once(tmp_path: Path) -> None:
    begun = time.monotonic()
    for words in (("doctor",), ("worker",)):
        answer = command(RedisFleet(tmp_path, url=f"redis://u:{SECRET}@127.0.0.1:{free_port()}/0"), *words)
        assert answer.code == 5, answer
        assert "cannot be reached" in answer.err
        assert "Traceback" not in answer.err
        assert SECRET not in answer.out + answer.err
    assert time.monotonic() - begun < 15


def test_a_redis_that_is_stopped_is_one_message_within_seconds(tmp_path: Path) -> None:
    with redis_at() as server:
        os.kill(server.pid, signal.SIGSTOP)
        begun = time.monotonic()
        answer = doctor(tmp_path, server.url)
        took = time.monotonic() - begun
        os.kill(server.pid, signal.SIGCONT)
    assert answer.code == 5, answer
    assert "no answer within 5 s" in answer.err
    assert took < 15


def test_a_worker_ends_when_it_is_told_to_although_redis_is_away(tmp_path: Path) -> None:
    with redis_at() as server:
        fleet = RedisFleet(tmp_path, url=server.url)
        [pid] = fleet.start_workers(1)
        server.kill()
        fleet.processes[pid].send_signal(signal.SIGTERM)
        fleet.processes.pop(pid).wait(15)


def test_an_idle_worker_leaves_within_ten_seconds_of_its_drain_although_redis_hangs(tmp_path: Path) -> None:
    with redis_at() as server:
        fleet = RedisFleet(tmp_path, url=server.url, variables={"PLAITA_WORKER_DRAIN_TIMEOUT": "0"})
        [pid] = fleet.start_workers(1)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            fleet.processes[pid].send_signal(signal.SIGTERM)
            fleet.processes.pop(pid).wait(15)
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_doctor_says_what_a_redis_may_lose(tmp_path: Path) -> None:
    with redis_at("--maxmemory-policy", "allkeys-lru") as server:
        answer = doctor(tmp_path, server.url)
    assert answer.code == 1, answer
    assert "maxmemory-policy is allkeys-lru" in answer.out
    assert "appendonly is off" in answer.out
    with redis_at("--appendonly", "yes") as server:
        assert "warning" not in doctor(tmp_path, server.url).out


def test_a_database_that_the_server_does_not_have_is_one_message(tmp_path: Path) -> None:
    with redis_at() as server:
        answer = doctor(tmp_path, f"{server.url}?db=99")
    assert answer.code == 5, answer
    assert "DB index is out of range" in answer.err


def test_a_node_of_a_cluster_is_refused_in_words(tmp_path: Path) -> None:
    port = free_port()
    with redis_at("--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(free_port())):
        answer = doctor(tmp_path, f"redis://127.0.0.1:{port}/0")
    assert answer.code == 2, answer
    assert "Redis Cluster" in answer.err


def test_a_url_that_makes_no_sense_is_one_message(tmp_path: Path) -> None:
    answer = doctor(tmp_path, "redis://localhost:port/0")
    assert answer.code == 2
    assert "expected redis://" in answer.err
    with pytest.raises(InputError):
        Runtime.open("redis://localhost:port/0")


async def test_a_process_that_lives_stays_announced(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaita.backends.redis.backend.PROCESS_TTL_MS", 300)
    store = RedisBackend(redis_url)
    await store.announce(Process("one", 1, ("default",), None, (), 0))
    ends = time.monotonic() + 1
    while time.monotonic() < ends:
        await store.hint(50)
    assert [p.holder for p in await store.living()] == ["one"]
    await store.close()


FORKED = """
import asyncio, os, sys
from plaita.backends.redis import RedisBackend
from plaita.ports.processes import Process

async def main(url):
    store = RedisBackend(url)
    await store.announce(Process("parent", os.getpid(), ("default",), None, (), 0))
    await store.hint(1)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if asyncio.run(child(store)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [p.holder for p in await asyncio.wait_for(store.living(), 5)] == ["parent"]
    await store.hint(1)
    await store.close()

async def child(store):
    answers = await asyncio.gather(*(store.now_ms() for _ in range(100)))
    await store.hint(1)
    await store.close()
    return all(answers)

asyncio.run(main(sys.argv[1]))
"""


def test_a_forked_child_has_a_connection_of_its_own() -> None:
    with redis_at() as server:
        done = subprocess.run([sys.executable, "-c", FORKED, server.url], timeout=15, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_sentinels_name_the_master_also_after_a_fail_over(tmp_path: Path) -> None:
    with replicated(tmp_path) as (master, other, url):
        fleet = RedisFleet(tmp_path, url=url)
        fleet.start_workers(1)
        with fleet.runtime() as runtime:
            all_completed(runtime, load_of(runtime, tmp_path, 2, 2))
            executions = load_of(runtime, tmp_path, 4, 20, 0.05)
            copied(master)
            master.kill()
            all_completed(runtime_after(runtime, other), executions)
        fleet.stop()


def test_sentinels_that_know_no_such_master_are_one_message(tmp_path: Path) -> None:
    answer = doctor(tmp_path, f"redis+sentinel://u:{SECRET}@127.0.0.1:{free_port()}/svc/0")
    assert answer.code == 5, answer
    assert "no Sentinel of 127.0.0.1" in answer.err
    assert SECRET not in answer.err
