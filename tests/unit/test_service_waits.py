"""``http_callback``, ``redis_queue`` and ``kafka_queue``: what they tell their service, and how they end."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError
from plaita.core.flow import Flow
from plaita.engine.effects import Offer
from plaita.node.registry import NodeRegistry
from tests.support.flows import chain
from tests.support.machine_world import World

MINUTE_MS = 60_000
CALLBACK = {"id": "w", "type": "http_callback"}
REDIS = {"id": "w", "type": "redis_queue", "queueName": "jobs"}
KAFKA = {"id": "w", "type": "kafka_queue", "bootstrap_servers": "a:1", "topic": "t", "groupId": "g"}
SASL = {"security_protocol": "SASL_SSL", "saslMechanism": "PLAIN", "sasl_username": "u"}


def load(node: dict[str, Any], **header: Any) -> Flow:
    return Flow.model_validate(chain(node, **header), registry=NodeRegistry())


def waiting(node: dict[str, Any], value: Any = None, **header: Any) -> World:
    at = World(load(node, flow_id="f", **header), value or {}, env={"TOKEN": "s3cret"})
    assert at.waits() == ["w"], at.ended
    return at


def config(node: dict[str, Any], value: Any = None, **header: Any) -> dict[str, Any]:
    (frame,) = waiting(node, value, **header).run.waits.values()
    assert frame.pending is not None
    found: dict[str, Any] = frame.pending["service_config"]
    return found


def test_the_state_of_a_callback_says_everything_its_service_needs() -> None:
    at = waiting({**CALLBACK, "auth_token": "env:HOOK"})
    (frame,) = at.run.waits.values()
    assert frame.pending == {
        "event_type": "http_callback",
        "event_filter": {},
        "is_async": True,
        "event_id": "event_w_1000000",
        "status": "pending",
        "node_subtype": "http_callback",
        "service_config": {
            "type": "http_callback",
            "node_id": "w",
            "execution_id": "x1",
            "flow_id": "f",
            "event_type": "http_callback",
            "event_filter": {},
            "retry_config": {"max_retries": 3, "retry_delay_ms": 1000, "exponential_backoff": True},
            "callback_config": {
                "path": "/callback/f/w/x1",
                "method": "POST",
                "timeout_minutes": 60,
                "full_url": "/callback/f/w/x1",
            },
            "auth_config": {"enabled": True, "type": "token", "token": "env:HOOK"},
            "validation_config": {"headers": {}, "params": {}},
            "response_config": {"success_response": {"status": "success"}, "error_response": {"status": "error"}},
        },
    }


def test_the_state_of_a_redis_queue_says_everything_its_service_needs() -> None:
    found = config({**REDIS, "redisPort": "6380", "redis_password": "file:/run/secret", "batchSize": 5})
    assert found["redis_config"] == {"host": "localhost", "port": 6380, "db": 0, "password": "file:/run/secret"}
    assert found["queue_config"] == {"name": "jobs", "type": "list", "message_format": "json"}
    assert found["listen_config"] == {"timeout_seconds": 0, "batch_size": 5}


def test_the_state_of_a_kafka_queue_says_everything_its_service_needs() -> None:
    found = config({**KAFKA, **SASL, "sasl_password": "env:KAFKA", "bootstrap_servers": ["a:1", " b:2 "]})
    assert found["kafka_config"] == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "u",
        "sasl_password": "env:KAFKA",
    }
    assert found["topic_config"] == {"topic": "t", "partition": None, "message_format": "json"}
    assert found["consumer_config"] == {
        "group_id": "g",
        "auto_offset_reset": "latest",
        "enable_auto_commit": True,
        "max_poll_records": 1,
        "timeout_ms": 30_000,
    }


def test_every_field_may_be_an_expression_or_a_template() -> None:
    callback = config(
        {**CALLBACK, "callbackPath": "/hook/{% $INPUT.id %}", "require_auth": "$INPUT.off",
         "callback_method": "$INPUT.m", "successResponse": {"id": "$INPUT.id"},
         "callback_timeout_minutes": "$INPUT.id"},
        {"id": 7, "off": False, "m": "PUT"},
    )  # fmt: skip
    assert callback["callback_config"] == {
        "path": "/hook/7", "method": "PUT", "timeout_minutes": 7, "full_url": "/hook/7",
    }  # fmt: skip
    assert callback["auth_config"] == {"enabled": False}
    assert callback["response_config"]["success_response"] == {"id": 7}
    kafka = config({**KAFKA, "bootstrap_servers": "$INPUT.s", "topic": "orders-{% $INPUT.n %}"}, {"s": "a, b", "n": 1})
    assert kafka["kafka_config"]["bootstrap_servers"] == ["a", "b"]
    assert kafka["topic_config"]["topic"] == "orders-1"


@pytest.mark.parametrize(
    ("fields", "auth"),
    [
        ({"auth_token": "file:/x"}, {"type": "token", "token": "file:/x"}),
        ({"auth_token": "abc"}, {"type": "token", "token": f"sha256:{hashlib.sha256(b'abc').hexdigest()}"}),
        ({}, {"type": "token", "token": "derived:x1/w/1000000"}),
        (
            {"auth_type": "basic", "auth_token": "ann:abc"},
            {"type": "basic", "username": "ann", "password": f"sha256:{hashlib.sha256(b'abc').hexdigest()}"},
        ),
        ({"auth_type": "basic", "auth_token": "env:X"}, {"type": "basic", "credentials": "env:X"}),
        ({"auth_type": "basic"}, {"type": "basic", "username": "x1", "password": "derived:x1/w/1000000"}),
        (
            {"auth_type": "signature", "auth_token": "env:X"},
            {"type": "signature", "secret": "env:X", "algorithm": "HMAC-SHA256"},
        ),
        (
            {"auth_type": "signature", "auth_token": "abc"},
            {"type": "signature", "secret": "definition:auth_token", "algorithm": "HMAC-SHA256"},
        ),
    ],
)
def test_what_a_caller_must_prove_is_in_the_state_without_the_secret(
    fields: dict[str, Any], auth: dict[str, Any]
) -> None:
    assert config({**CALLBACK, **fields})["auth_config"] == {"enabled": True, **auth}


@pytest.mark.parametrize(
    "node",
    [
        {**CALLBACK, "auth_token": "hunter2"},
        {**CALLBACK, "authType": "signature", "authToken": "hunter2"},
        {**CALLBACK, "authType": "basic", "authToken": "ann:hunter2"},
        {**REDIS, "redis_password": "hunter2"},
        {**KAFKA, **SASL, "sasl_password": "hunter2"},
    ],
)
def test_a_secret_in_the_flow_is_a_warning_and_stays_out_of_the_state(node: dict[str, Any]) -> None:
    (issue,) = load(node).issues
    assert (issue.severity, issue.code) == ("warning", "secret_in_flow")
    at = waiting(node)
    assert "hunter2" not in json.dumps([value.decode() for value in at.store.values()])


def test_a_secret_that_an_expression_gives_is_refused_where_it_would_have_to_be_kept() -> None:
    at = World(load({**REDIS, "redis_password": "$INPUT.p"}), {"p": "hunter2"})
    assert at.failure.kind == "node_error"
    assert "evaluates to a secret itself" in at.failure.message
    assert "hunter2" not in at.failure.message
    assert config({**REDIS, "redis_password": "$INPUT.p"}, {"p": "env:P"})["redis_config"]["password"] == "env:P"
    token = config({**CALLBACK, "auth_token": "$ENV.TOKEN"}, exposeEnv=["TOKEN"])["auth_config"]["token"]
    assert token == f"sha256:{hashlib.sha256(b's3cret').hexdigest()}"


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({**CALLBACK, "callback_method": "PATCH"}, "callback_method: needs GET or POST or PUT or DELETE, not 'PATCH'"),
        ({**CALLBACK, "callback_timeout_minutes": 0}, "0 is not a whole number from 1 to"),
        ({**CALLBACK, "require_auth": "yes"}, "require_auth: needs true or false, not text"),
        ({**CALLBACK, "validate_headers": ["x"]}, "validate_headers: needs an object, not list"),
        ({**CALLBACK, "auth_type": "basic", "auth_token": "abc"}, "auth_token of type basic is user:password"),
        ({**CALLBACK, "auth_token": 5}, "auth_token: needs text"),
        ({**CALLBACK, "event_type": " "}, "an event needs a type"),
        ({**REDIS, "queueName": ""}, "queue_name: "),
        ({"id": "w", "type": "redis_queue"}, "'queue_name' is missing"),
        ({**REDIS, "queue_type": "set"}, "needs list or stream or pubsub, not 'set'"),
        ({**REDIS, "redis_port": 70_000}, "70000 is not a whole number from 1 to 65535"),
        ({**REDIS, "redis_port": True}, "True is not a whole number"),
        ({**REDIS, "subscription_timeout": "soon"}, "'soon' is neither a number nor a duration"),
        ({**KAFKA, "bootstrap_servers": " , "}, "no server is named"),
        ({**KAFKA, "bootstrap_servers": 5}, "is not a list of servers"),
        ({**KAFKA, "security_protocol": "SASL_SSL"}, "SASL_SSL needs sasl_mechanism, sasl_username and sasl_password"),
        ({**KAFKA, "timeout_ms": -1}, "-1 is not a whole number from 0"),
        ({**KAFKA, "topics": "t"}, "topic"),
    ],
)
def test_what_a_service_could_not_do_is_told_at_load(node: dict[str, Any], text: str) -> None:
    with pytest.raises(FlowLoadError) as caught:
        load(node)
    assert text in str(caught.value)


def test_what_a_service_could_not_do_is_told_at_run_time_too() -> None:
    at = World(load({**REDIS, "queue_type": "$INPUT.t", "queue_name": "q"}), {"t": "set"})
    assert at.failure.message == "node 'w' (redis_queue): queue_type: needs list or stream or pubsub, not 'set'"


@pytest.mark.parametrize(
    ("node", "limit_ms"),
    [
        (CALLBACK, 60 * MINUTE_MS),
        ({**CALLBACK, "callback_timeout_minutes": 2}, 2 * MINUTE_MS),
        ({**CALLBACK, "subscription_timeout": 30}, 30_000),
        ({**REDIS, "timeout_seconds": 5}, 5_000),
        ({**REDIS, "timeout_seconds": 5, "subscriptionTimeout": 60}, 5_000),
        (KAFKA, 30_000),
    ],
)
def test_a_wait_that_nobody_answers_ends_with_a_timeout(node: dict[str, Any], limit_ms: int) -> None:
    at = waiting(node)
    at.elapse(limit_ms - 1)
    assert at.ended is None
    at.elapse(1)
    assert at.output["status"] == "timeout"


@pytest.mark.parametrize("node", [REDIS, {**KAFKA, "timeout_ms": 0}])
def test_a_queue_without_a_limit_waits_for_ever(node: dict[str, Any]) -> None:
    at = waiting(node)
    at.elapse(10**10)
    assert at.ended is None


@pytest.mark.parametrize("node", [CALLBACK, REDIS, KAFKA])
def test_anybody_may_answer_with_data(node: dict[str, Any]) -> None:
    at = waiting(node)
    at.wake("w", {"message": {"n": 1}})
    assert at.output["status"] == "completed"
    assert at.output["event_data"] == {"message": {"n": 1}}
    assert at.output["service_config"]["type"] == node["type"]


def test_an_event_of_the_type_answers_when_it_has_the_execution_as_key_and_passes_the_filter() -> None:
    at = waiting({**REDIS, "event_filter": {"message.kind": "paid"}})
    (wait_id,) = at.run.waits
    frame = at.run.waits[wait_id]
    assert frame.pc is not None and frame.pc.waiting is not None
    spec = frame.pc.waiting.spec(frame)
    assert (spec.kind, spec.event_type, spec.key, spec.by_filter) == ("event", "redis_message", "x1", True)
    at.step([Offer(wait_id, 1, {"message": {"kind": "sent"}})])
    assert at.ended is None
    at.step([Offer(wait_id, 2, {"message": {"kind": "paid"}})])
    assert at.output["event_data"] == {"message": {"kind": "paid"}}


def test_a_wait_that_is_restored_after_a_crash_is_the_same() -> None:
    at = waiting(CALLBACK)
    at.crash()
    at.wake("w", 1)
    assert at.output["service_config"]["auth_config"]["token"] == "derived:x1/w/1000000"
