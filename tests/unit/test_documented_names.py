"""Every documented import path: what is behind it takes the documented parameters, or says that it comes later."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from pydantic import BaseModel

import plaita
from plaita.base.errors import NotInRelease

DIFFERENCES = (Path(__file__).parents[2] / "docs" / "reference" / "differences.md").read_text(encoding="utf-8")
NODE: Final = "id name desc output next timeout source_line timeout_handler error_handler"
FLOW_WORKER: Final = (
    "execution_storage flow_storage event_bus cache_size cache_ttl callback_handlers execution_lease lease_ttl_seconds"
)
REDIS_BUS: Final = "redis_url event_key_prefix subscription_key_prefix processing_key_prefix"

CALLED: Final = {
    "plaita.cli.main": "argv",
    "plaita.dsl.build": "flow_id input_type output_type desc version author timeout global_context metadata",
    "plaita.dsl.codeflow.compile_source": "src flow_id opts",
    "plaita.dsl.codeflow.flow": "flow_id desc version author timeout global_context metadata",
    "plaita.core.flow.Flow": (
        "flow_id version runtime input_type output_type nodes author desc metadata timeout global_context expose_env"
    ),
    "plaita.node.End": "NODE result_type error",
    "plaita.node.Start": "NODE",
    "plaita.io.Property": "data_type name label desc is_required",
    "plaita.core.executor.FlowExecution": "parent verbose mode callback_handlers callback_manager event_bus",
    "plaita.core.callback.FlowCallback": "",
    "plaita.storage.base.ExecutionState": (
        "execution_id flow_id flow_name flow_version flow_hash flow_hash_algo engine_version tenant_id "
        "context status start_time last_update_time end_time"
    ),
    "plaita.core.errors.FlowExecutionException": "code message error_type node source_line",
    "plaita.storage.memory.MemoryExecutionStorage": "",
    "plaita.event.core.Event": "event_id event_type data timestamp source correlation_id tenant_id",
    "plaita.event.memory.InMemoryEventBus": "",
    "plaita.core.context.ExecutionContext": (
        "parent express_prefix express_input_name express_parent_name express_node_name express_global_name"
    ),
    "plaita.node.Assignment": "NODE output_type upstream_output",
    "plaita.node.Node": "NODE",
    "plaita.storage.memory.MemoryFlowStorage": "",
    "plaita.core.callback.CallbackManager": "handlers parent inherit_handlers",
    "plaita.event.core.EventSubscription": (
        "subscription_id event_type filter_condition correlation_id flow_id node_id created_at timeout "
        "tenant_id processed_events"
    ),
    "plaita.event.memory.InMemoryEventSubscriptionStorage": "",
    "plaita.node.event_node.EventNode": "NODE event_type event_filter subscription_timeout",
    "plaita.core.errors.NodeException": "code message",
    "plaita.core.errors.RecoverableErrorHandler": "strategy default_value error_code error_message retry_times",
    "plaita.core.flow.parse_and_run": "content",
    "plaita.event.core.EventBus": "",
    "plaita.node.Bool": "NODE output_type",
    "plaita.node.NodeRegistry": "auto_discover parent",
    "plaita.node.assignment.Assignment": "NODE output_type upstream_output",
    "plaita.node.basic.Node": "NODE",
    "plaita.node.code.CodeNode": "NODE language code input sandbox_backend",
    "plaita.node.concurrent.Parallel": "NODE branches is_conditional mode",
    "plaita.node.decide.Condition": "field operator value",
    "plaita.node.get_default_registry": "",
    "plaita.node.register_code_node": "registry default_backend allowed_backends allowed_languages",
    "plaita.storage.ExecutionState": (
        "execution_id flow_id flow_name flow_version flow_hash flow_hash_algo engine_version tenant_id "
        "context status start_time last_update_time end_time"
    ),
    "plaita.storage.ExecutionStorage": "",
    "plaita.Flow": (
        "flow_id version runtime input_type output_type nodes author desc metadata timeout global_context expose_env"
    ),
    "plaita.core.callback.BaseCallbackManager": "",
    "plaita.core.callback.LoggerCallback": "",
    "plaita.core.errors.ErrorHandler": "strategy default_value error_code error_message",
    "plaita.core.errors.FlowResultError": "code message",
    "plaita.core.errors.FlowStartMissingError": "message node",
    "plaita.core.errors.NodeExecutionError": "message node code",
    "plaita.core.expression.ExpressionEvaluator": "registry",
    "plaita.core.expression.ExpressionRegistry": "",
    "plaita.core.flow.parse": "content",
    "plaita.errors.ErrorHandler": "strategy default_value error_code error_message",
    "plaita.errors.FlowExecutionException": "code message error_type node source_line",
    "plaita.errors.FlowResultError": "code message",
    "plaita.errors.NodeException": "code message",
    "plaita.errors.RecoverableErrorHandler": "strategy default_value error_code error_message retry_times",
    "plaita.event.core.RetryPolicy": "max_retries initial_delay backoff_factor max_delay",
    "plaita.event.exceptions.EventTimeoutError": "event_type timeout",
    "plaita.event.memory.MemoryEventStorage": "",
    "plaita.io.evaluate": "value context prefix registry",
    "plaita.io.match": "props obj context",
    "plaita.io.parse_function": "expression context prefix registry",
    "plaita.node.InlineFlow": "NODE input child_flow",
    "plaita.node.calculate.Calculate": "NODE call",
    "plaita.node.calculate.Call": "function_name params",
    "plaita.node.code.run_python": "code",
    "plaita.node.code.run_python_restricted": "code input_value extra_modules",
    "plaita.node.code.run_python_subprocess": "code input_value cancel_event",
    "plaita.node.decide.Bool": "NODE output_type",
    "plaita.node.decide.ConditionGroup": "relation conditions",
    "plaita.node.decide.Logic": "NODE output_type",
    "plaita.node.decide.Switch": "NODE output_type",
    "plaita.node.decide.SwitchLegacy": "NODE output_type",
    "plaita.node.decide.condition_from_json": "content",
    "plaita.node.http.HTTP": "NODE method content_type request_timeout",
    "plaita.node.loop.Filter": "NODE input child_flow item_type collection",
    "plaita.node.loop.Find": "NODE input child_flow item_type collection",
    "plaita.node.loop.Loop": "NODE input child_flow item_type collection condition",
    "plaita.node.loop.Map": "NODE input child_flow item_type collection concurrent",
    "plaita.node.loop.While": "NODE input child_flow condition max_iterations",
    "plaita.node.node_register": "node_cls",
    "plaita.node.parse_node": "node_dict",
    "plaita.node.start.Start": "NODE",
    "plaita.server.control.ControlCommand": "command graceful timestamp",
    "plaita.server.execution_lease.ExecutionLeaseError": "",
    "plaita.server.execution_lease.NullExecutionLease": "",
    "plaita.server.execution_lease.RedisExecutionLease": "redis_client key_prefix fence_key_prefix",
    "plaita.server.factory.create_storage_component": "storage_type component_type",
    "plaita.server.registry.ServiceInfo": (
        "instance_id service_type host status start_time metadata active_tasks last_heartbeat"
    ),
    "plaita.server.task_queue.RedisStreamTaskQueue": (
        "redis_client stream_key group_name consumer_name claim_min_idle_ms reclaim_window max_deliveries dlq_key"
    ),
    "plaita.server.task_queue.enqueue_task": (
        "redis_client stream_key task schema_version default_timestamp config_family config_generation "
        "budget_generation"
    ),
    "plaita.server.tenant_context.current_tenant": "",
    "plaita.server.tenant_context.reset_current_tenant": "token",
    "plaita.server.tenant_context.set_current_tenant": "tenant_id source",
    "plaita.server.tenant_context.tenant_namespace": "tenant_id",
    "plaita.storage.MemoryExecutionStorage": "",
    "plaita.storage.RedisExecutionStorage": "host port db password client namespace",
    "plaita.storage.RedisFlowStorage": "host port db password client namespace",
    "plaita.storage.redis.RedisExecutionStorage": "host port db password client namespace",
    "plaita.storage.redis.RedisFlowStorage": "host port db password client namespace",
    "plaita.storage.redis.execution_state_ttl_seconds": "",
    "plaita.RedisExecutionStorage": "host port db password client namespace",
    "plaita.RedisFlowStorage": "host port db password client namespace",
    "plaita.FlowWorker": FLOW_WORKER,
    "plaita.RedisEventBus": REDIS_BUS,
    "plaita.event.RedisEventBus": REDIS_BUS,
    "plaita.event.redis.RedisEventBus": REDIS_BUS,
    "plaita.event.redis.RedisEventStorage": "redis_url key_prefix ttl",
    "plaita.event.redis.RedisEventSubscriptionStorage": "redis_url key_prefix ttl",
    "plaita.server.event_filter.EventFilter": (
        "execution_storage subscription_storage redis_client event_bus queue_name enable_subscription_timeout_checker "
        "timeout_check_interval event_storage"
    ),
    "plaita.server.event_reconcile.EventReconciler": (
        "event_storage event_filter redis_client interval_seconds backfill_seconds batch_size"
    ),
    "plaita.server.flow_worker.FlowWorker": FLOW_WORKER,
    "plaita.server.flow_worker.RedisFlowWorker": (
        f"{FLOW_WORKER} redis_url queue_name enable_registry registry_ttl heartbeat_interval enable_redis_logging "
        "redis_client consumer_group consumer_name claim_min_idle_ms max_deliveries dlq_key read_block_ms concurrency "
        "min_free_disk_gib disk_guard_path disk_guard_poll_seconds watchdog_interval_seconds cancel_poll_seconds "
        "residue_sweep_interval_seconds metrics_port metrics_host alert_webhook"
    ),
    "plaita.types.ValidationError": "",
    "plaita.types.get_native_type": "data_type str_value",
    "plaita.types.register_validator": "name func message",
    "plaita.types.valid": "data_type value validators",
}
"""Models, classes, exceptions and functions, and the parameters they take; ``NODE``: and those of every node."""

ENUMS: Final = {
    "plaita.core.errors.FlowErrorType": (
        "NODE_ERROR FLOW_ERROR ERROR_RESULT INVALID_CALLBACK EXECUTION_NOT_FOUND NODE_NOT_FOUND INVALID_NODE_TYPE"
    ),
    "plaita.core.errors.ErrorStrategy": "ABORT CONTINUE CONTINUE_WITH",
    "plaita.core.executor.ExecutionMode": "NORMAL GENERATOR DISTRIBUTED",
    "plaita.core.callback.FlowEvent": "FLOW_START FLOW_END NODE_START NODE_END",
    "plaita.core.errors.ResumeType": "CONTINUE RETRY CANCEL TIMEOUT EVENT",
    "plaita.core.expression.FunctionCategory": "MATH STRING LOGIC ARRAY DICT DATETIME JSON TYPE",
    "plaita.errors.ErrorStrategy": "ABORT CONTINUE CONTINUE_WITH",
    "plaita.errors.FlowErrorType": (
        "NODE_ERROR FLOW_ERROR ERROR_RESULT INVALID_CALLBACK EXECUTION_NOT_FOUND NODE_NOT_FOUND INVALID_NODE_TYPE"
    ),
    "plaita.node.event_node.EventNodeStatus": "PENDING COMPLETED ERROR TIMEOUT CANCELLED",
}
"""Enumerations and their members."""

MODULES: Final = (
    "plaita.core.types",
    "plaita.io.types",
    "plaita.node.decide",
    "plaita.core.errors",
    "plaita.errors",
    "plaita.event",
    "plaita.types",
)
"""Modules."""

VALUES: Final[dict[str, Any]] = {
    "plaita.node.decide.CONDITION_OP_EQ": "eq",
    "plaita.node.http.HTTP_DO_REQUEST_ERROR": 1002,
    "plaita.node.http.HTTP_NODE_EXEC_ERROR": 1003,
    "plaita.server.task_queue.DEFAULT_CONSUMER_GROUP": "plaita-workers",
    "plaita.server.task_queue.DEFAULT_DLQ_MAX_LEN": 1000,
    "plaita.server.tenant_context.DEFAULT_TENANT_ID": "default",
    "plaita.storage.redis.DEFAULT_EXECUTION_STATE_TTL_DAYS": 30,
    "plaita.types.BOOL": "boolean",
    "plaita.types.FLOAT": "float",
    "plaita.types.INTEGER": "integer",
    "plaita.types.NUMBER": "number",
    "plaita.types.STRING": "string",
}
"""Constants."""

TABLES: Final = {
    "plaita.core.types.native_types": "string boolean integer float decimal number",
    "plaita.types.native_types": "string boolean integer float decimal number",
    "plaita.types.data_validators": "required max_length min max",
    "plaita.node.calculate.FUNCTIONS": "add sub multiply div concat replace",
}
"""Dictionaries and some of their keys."""

LATER: Final = (
    "plaita.server.services.delay_service.DelayService",
    "plaita.LangfuseCallback",
    "plaita.PlaitaClient",
    "plaita.client.PlaitaClient",
)
"""Names of a later release."""


def behind(path: str) -> Any:
    """What ``from module import name`` gives."""
    module, _, name = path.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(__import__(module, fromlist=[name]), name)


def taken(found: Any) -> set[str] | None:
    """Names of parameters; ``None`` when it takes any."""
    if isinstance(found, type) and issubclass(found, BaseModel):
        return {*found.model_fields, *getattr(found, "LEGACY_KEYS", ())}
    parameters = inspect.signature(found).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters}


@pytest.mark.parametrize("path", CALLED)
def test_a_documented_name_takes_the_documented_parameters(path: str) -> None:
    found = behind(path)
    documented = set(CALLED[path].replace("NODE", NODE).split())
    names = taken(found) if documented else None
    assert callable(found)
    assert names is None or documented <= names


@pytest.mark.parametrize("path", ENUMS)
def test_a_documented_enumeration_has_its_members(path: str) -> None:
    assert set(ENUMS[path].split()) <= set(behind(path).__members__)


@pytest.mark.parametrize("path", MODULES)
def test_a_documented_module_can_be_imported(path: str) -> None:
    module, _, name = path.rpartition(".")
    found = getattr(import_module(module), name, None) or import_module(path)
    assert isinstance(found, ModuleType)


@pytest.mark.parametrize("path", VALUES)
def test_a_documented_constant_has_its_value(path: str) -> None:
    assert behind(path) == VALUES[path]


@pytest.mark.parametrize("path", TABLES)
def test_a_documented_dictionary_has_its_keys(path: str) -> None:
    assert set(TABLES[path].split()) <= behind(path).keys()


@pytest.mark.parametrize("path", LATER)
def test_a_name_of_a_later_release_says_so_and_is_listed(path: str) -> None:
    with pytest.raises(NotInRelease, match=f"{path} is not available in this release") as caught:
        behind(path)
    assert isinstance(caught.value, ImportError)
    assert caught.value.hint
    assert f"`{path}`" in DIFFERENCES


def test_everything_that_the_package_names_can_be_had() -> None:
    names: dict[str, Any] = {}
    exec("from plaita import *", names)
    assert set(plaita.__all__) <= names.keys()
    assert names["Flow"] is behind("plaita.core.flow.Flow")
    assert {*plaita.__all__} <= {*dir(plaita)}


def test_an_unknown_name_is_an_attribute_error() -> None:
    for module in ("plaita", "plaita.node", "plaita.storage", "plaita.event", "plaita.client", "plaita.types"):
        assert not hasattr(import_module(module), "nobody_documents_this")


@pytest.mark.parametrize(("module", "home", "name"), [
    ("plaita.errors", "plaita.core.errors", "ErrorHandler"),
    ("plaita.types", "plaita.core.types", "valid"),
])  # fmt: skip
def test_a_name_at_its_older_path_is_the_same_and_warns(module: str, home: str, name: str) -> None:
    found = import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is deprecated: use {home}.{name}"):
        assert getattr(found, name) is getattr(import_module(home), name)
