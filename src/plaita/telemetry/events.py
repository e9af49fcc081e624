"""The table: each event once, with its level, fields and metric.

Whatever is dropped, clamped or answered by a fallback has an event with ``loss=True`` and a counter of its own.
"""

from typing import Final

from plaita.telemetry.event import Event, Metric, declare

_RUN = "run_id flow_id"
_NODE = "run_id node_id path"

# Executions.
RUN_BLOCKED: Final[Event] = declare(
    "run_blocked", "warning", "An execution cannot go on until somebody acts.", "run_id reason",
    metric="plaita_runs_blocked",
)  # fmt: skip
RUN_CLAIMED: Final[Event] = declare(
    "run_claimed", "debug", "This process moves an execution from now on.", _RUN, metric="plaita_runs_claimed"
)
RUN_TAKEN_OVER: Final[Event] = declare(
    "run_taken_over", "info", "An execution was taken from a process that was lost.", _RUN, metric="plaita_takeovers"
)
RUN_ENDED: Final[Event] = declare(
    "run_ended", "debug", "An execution ended in this process.", f"{_RUN} status",
    metric=Metric("plaita_runs_ended", by="status"),
)  # fmt: skip
STEP_SETTLED: Final[Event] = declare(
    "step_settled", "debug", "A commit is stored; how long the store took, repetitions included.", "run_id seq seconds",
    metric=Metric("plaita_settle_seconds", "histogram", "seconds"),
)  # fmt: skip
CALL_RETURNED: Final[Event] = declare(
    "call_returned", "debug", "An effectful node came back; how long it took.", "run_id path type failed seconds",
    metric=Metric("plaita_call_seconds", "histogram", "seconds", by="type"),
)  # fmt: skip
ATTEMPT_CRASHED: Final[Event] = declare(
    "attempt_crashed", "error", "An attempt ended in an unexpected error; the execution is due when its lease ends.",
    f"{_RUN} error", metric="plaita_attempts_crashed",
)  # fmt: skip
LEASE_LOST: Final[Event] = declare(
    "lease_lost", "warning", "An execution belongs to another process now; the work since the last commit is dropped.",
    "run_id holder", metric="plaita_leases_lost", loss=True,
)  # fmt: skip
STORE_REWOUND: Final[Event] = declare(
    "store_rewound", "error", "The store forgot a commit it had accepted: it was restored, or a fail-over lost it.",
    "run_id seq stored", metric="plaita_store_rewinds", loss=True,
)  # fmt: skip
SETTLE_REFUSED: Final[Event] = declare(
    "settle_refused", "warning", "A commit was refused because a wait or the content no longer fits.",
    "run_id answer", metric="plaita_settles_refused", loss=True,
)  # fmt: skip
SETTLE_REPEATED: Final[Event] = declare(
    "settle_repeated", "info", "A commit that had been stored was sent again; nothing changed.", "run_id seq",
    metric="plaita_settles_repeated",
)  # fmt: skip

# Processes.
WORKER_STARTED: Final[Event] = declare(
    "worker_started", "info", "A worker takes executions.", "holder store concurrency"
)
WORKER_DRAINING: Final[Event] = declare(
    "worker_draining", "info", "A worker takes nothing new and lets its executions reach their next commit.",
    "holder running",
)  # fmt: skip
WORKER_STOPPED: Final[Event] = declare("worker_stopped", "info", "A worker ended.", "holder handed_back")
CHILD_STARTED: Final[Event] = declare(
    "child_started", "info", "A worker process of several was started.", "child pid holder"
)
CHILD_NOT_STARTED: Final[Event] = declare(
    "child_not_started", "error", "The system would not start a worker process; it is tried again.", "child error",
    metric="plaita_children_not_started",
)  # fmt: skip
CHILD_DIED: Final[Event] = declare(
    "child_died", "warning", "A worker process died; what it held is due again, and a new one is started.",
    "child pid holder how again_ms", metric="plaita_children_died",
)  # fmt: skip
CHILD_LEFT: Final[Event] = declare(
    "child_left", "info", "A worker process ended because it was told to; no new one is started.", "child pid holder"
)
WORKER_STATUS: Final[Event] = declare(
    "worker_status", "info", "Somebody asked a worker how it is.", "holder state running concurrency"
)
COMMAND_HEARD: Final[Event] = declare(
    "command_heard", "info", "A command reached this worker over its control channel.", "holder command"
)
COMMAND_UNKNOWN: Final[Event] = declare(
    "command_unknown", "warning", "A message on the control channel is no command that a worker obeys.", "holder size",
    metric="plaita_commands_unknown", loss=True,
)  # fmt: skip
COMMAND_FAILED: Final[Event] = declare(
    "command_failed", "warning", "What a program does at a command failed.", "holder command error",
    metric="plaita_commands_failed", loss=True,
)  # fmt: skip
REGISTRY_FAILED: Final[Event] = declare(
    "registry_failed", "warning", "The registry or the control channel on Redis could not be used; work goes on.",
    "verb error", metric=Metric("plaita_registry_failures", documented="plaita_registry_status_flush_failed_total"),
    loss=True,
)  # fmt: skip
HOLDERS_RELEASED: Final[Event] = declare(
    "holders_released", "info", "Processes died without leaving; what they held is due again.", "count",
    metric=Metric("plaita_holders_released", "sum", "count"),
)  # fmt: skip
RENEWAL_FAILED: Final[Event] = declare(
    "renewal_failed", "warning", "Leases could not be renewed; it is tried again, within a period.", "holder error",
    metric="plaita_renewals_failed", seldom="holder",
)  # fmt: skip
RENEWAL_LATE: Final[Event] = declare(
    "renewal_late", "warning", "Leases were renewed later than every second period: the process or the store is slow.",
    "holder late_ms", metric="plaita_renewals_late",
)  # fmt: skip
STORE_UNAVAILABLE: Final[Event] = declare(
    "store_unavailable", "error", "The store did not answer; the same request is sent again.", "store verb error",
    metric="plaita_store_unavailable", seldom="store verb",
)  # fmt: skip
STORE_BACK: Final[Event] = declare(
    "store_back", "info", "The store answers again; for how long it did not answer a worker.", "store seconds"
)
STORE_FORGOT: Final[Event] = declare(
    "store_forgot", "error", "The store was emptied, or put back to an older state; the worker goes on with it.",
    "store holder",
)  # fmt: skip
STORE_AT_RISK: Final[Event] = declare(
    "store_at_risk", "warning", "The store may lose what it accepted, as it is set up now.", "store risk hint"
)

# What is given up, clamped or replaced.
THREAD_ABANDONED: Final[Event] = declare(
    "thread_abandoned", "warning", "Blocking node code did not end in time; its thread is left behind and replaced.",
    _NODE, metric="plaita_threads_abandoned", loss=True,
)  # fmt: skip
DRAIN_CUT: Final[Event] = declare(
    "drain_cut", "warning", "An execution did not reach a commit within the grace; what it was doing was cut.",
    "run_id", metric="plaita_drains_cut", loss=True,
)  # fmt: skip
HISTORY_CLIPPED: Final[Event] = declare(
    "history_clipped", "debug", "A value was cut to its cap for the history; the execution goes on with all of it.",
    "run_id path size", metric="plaita_history_values_clipped", loss=True,
)  # fmt: skip
ROUNDS_LIMITED: Final[Event] = declare(
    "rounds_limited", "info", "A `while` was stopped by its `maxIterations`; the flow goes on behind it.",
    "run_id path", metric="plaita_rounds_limited", loss=True,
)  # fmt: skip
FLOW_UNLOADABLE: Final[Event] = declare(
    "flow_unloadable", "error", "This process cannot load the definition of an execution and leaves it to others.",
    f"{_RUN} missing", metric="plaita_flows_unloadable", loss=True,
)  # fmt: skip
DOUBT_RERUN: Final[Event] = declare(
    "doubt_rerun", "warning", "A call that may have been performed is made again, with other arguments than before.",
    _NODE, metric="plaita_doubts_rerun", loss=True,
)  # fmt: skip
MESSAGES_ACCEPTED: Final[Event] = declare(
    "messages_accepted", "debug", "Messages of producers had their effect, or became dead letters.", "count",
    metric=Metric("plaita_messages_accepted", "sum", "count", documented="plaita_queue_acked_total"),
)  # fmt: skip
MESSAGE_REFUSED: Final[Event] = declare(
    "message_refused", "warning", "A message of a producer became a dead letter.", "message_id reason",
    metric=Metric("plaita_messages_refused", documented="plaita_queue_dead_lettered_total"), loss=True,
)  # fmt: skip
MESSAGE_LATE: Final[Event] = declare(
    "message_late", "info", "A message came too late or asked for what happens by itself; nothing changed.",
    "message_id answer", metric="plaita_messages_late", loss=True,
)  # fmt: skip
SETTING_UNKNOWN: Final[Event] = declare(
    "setting_unknown", "warning", "A variable has our prefix and means nothing here.", "variable hint",
    metric="plaita_settings_unknown", loss=True,
)  # fmt: skip
EVENT_FIELD_DROPPED: Final[Event] = declare(
    "event_field_dropped", "warning", "A field outside the declaration of its event was not reported.", "event field",
    metric="plaita_event_fields_dropped", loss=True,
)  # fmt: skip

# The webhook for dead letters.
ALERT_SENT: Final[Event] = declare(
    "alert_sent", "debug", "A dead letter was posted to the webhook.", "message_id",
    metric=Metric("plaita_alerts_sent", documented="plaita_alert_webhook_sent_total"),
)  # fmt: skip
ALERT_FAILED: Final[Event] = declare(
    "alert_failed", "warning", "A dead letter could not be posted to the webhook; it is not tried again.",
    "message_id error", metric=Metric("plaita_alerts_failed", documented="plaita_alert_webhook_failed_total"),
    loss=True,
)  # fmt: skip
ALERT_DROPPED: Final[Event] = declare(
    "alert_dropped", "warning", "Too many dead letters wait to be posted to the webhook; this one is not.",
    "message_id", metric=Metric("plaita_alerts_dropped", documented="plaita_alert_webhook_dropped_total"), loss=True,
)  # fmt: skip

# Care of the store.
RUNS_PRUNED: Final[Event] = declare(
    "runs_pruned", "info", "Executions past their retention were removed, and old events and definitions nobody needs.",
    "count", metric=Metric("plaita_runs_pruned", "sum", "count"),
)  # fmt: skip

# Events that programs publish on Redis.
EVENT_GIVEN: Final[Event] = declare(
    "event_given", "debug", "A published event answered the wait it was meant for.", "event_id run_id wait_id",
    metric="plaita_events_given",
)  # fmt: skip
EVENT_FOREIGN: Final[Event] = declare(
    "event_foreign", "warning", "A published event names an execution of another tenant; it reaches nobody.",
    "event_id run_id tenant", metric="plaita_events_foreign", loss=True,
)  # fmt: skip
EVENT_UNREADABLE: Final[Event] = declare(
    "event_unreadable", "warning", "What was published on a channel of events is none.", "reason",
    metric="plaita_events_unreadable", loss=True,
)  # fmt: skip

# Event buses in this process.
EVENT_FORGOTTEN: Final[Event] = declare(
    "event_forgotten", "debug", "A bus in memory forgot its oldest event to make room.", "event_type event_id",
    metric="plaita_events_forgotten", loss=True,
)  # fmt: skip
EVENT_HANDLER_FAILED: Final[Event] = declare(
    "event_handler_failed", "warning", "A handler failed; it sees the event again when that is published again.",
    "event_type event_id handler_id attempts error", metric="plaita_event_handlers_failed", loss=True,
)  # fmt: skip
