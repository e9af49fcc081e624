"""The table: each event once, with its level, fields, metric and whether the timeline of the execution shows it.

Whatever is dropped, clamped or answered by a fallback has an event with ``loss=True`` and a counter of its own.
"""

from typing import Final

from plaita.telemetry.event import Event, Metric, declare

_RUN = "run_id flow_id"
_NODE = "run_id node_id path"

# The life of an execution.
RUN_SUBMITTED: Final[Event] = declare(
    "run_submitted",
    "info",
    "An execution was accepted.",
    f"{_RUN} queue",
    metric="plaita_runs_submitted",
    timeline=True,
)
RUN_DEDUPLICATED: Final[Event] = declare(
    "run_deduplicated", "info", "A start was repeated; the existing execution answered.", _RUN,
    metric="plaita_runs_deduplicated",
)  # fmt: skip
RUN_CLAIMED: Final[Event] = declare(
    "run_claimed", "debug", "A process took an execution to advance it.", f"{_RUN} holder tries",
    metric="plaita_runs_claimed", timeline=True,
)  # fmt: skip
RUN_PARKED: Final[Event] = declare(
    "run_parked", "info", "An execution waits and holds no process.", f"{_RUN} waits due_ms",
    metric="plaita_runs_parked", timeline=True,
)  # fmt: skip
RUN_HANDED_BACK: Final[Event] = declare(
    "run_handed_back", "info", "A process gave an execution back unfinished, for another one to go on.",
    f"{_RUN} holder", metric="plaita_runs_handed_back", timeline=True,
)  # fmt: skip
RUN_COMPLETED: Final[Event] = declare(
    "run_completed", "info", "An execution reached its end.", f"{_RUN} elapsed_ms", metric="plaita_runs_completed",
    timeline=True,
)  # fmt: skip
RUN_FAILED: Final[Event] = declare(
    "run_failed", "error", "An execution ended with an error.", f"{_RUN} kind code path",
    metric="plaita_runs_failed", timeline=True,
)  # fmt: skip
RUN_CANCELLED: Final[Event] = declare(
    "run_cancelled", "info", "An execution was cancelled.", f"{_RUN} by", metric="plaita_runs_cancelled", timeline=True
)
RUN_REOPENED: Final[Event] = declare(
    "run_reopened", "info", "A failed execution was opened again at the node that failed.", f"{_RUN} by",
    metric="plaita_runs_reopened", timeline=True,
)  # fmt: skip
RUN_DELETED: Final[Event] = declare(
    "run_deleted", "info", "An execution was deleted; its id stays taken.", f"{_RUN} by", metric="plaita_runs_deleted"
)
RUN_BLOCKED: Final[Event] = declare(
    "run_blocked", "warning", "An execution cannot go on until somebody acts.", f"{_RUN} reason",
    metric="plaita_runs_blocked", timeline=True,
)  # fmt: skip

# Nodes.
NODE_STARTED: Final[Event] = declare(
    "node_started", "debug", "A call of a node began.", f"{_NODE} attempt", timeline=True
)
NODE_FINISHED: Final[Event] = declare(
    "node_finished", "debug", "A call of a node ended; its result is durable.", f"{_NODE} attempt elapsed_ms",
    metric="plaita_nodes_finished", timeline=True,
)  # fmt: skip
NODE_FAILED: Final[Event] = declare(
    "node_failed", "warning", "A call of a node raised an error.", f"{_NODE} attempt kind code",
    metric="plaita_nodes_failed", timeline=True,
)  # fmt: skip
NODE_RETRY_PLANNED: Final[Event] = declare(
    "node_retry_planned", "info", "A failed node will be called again.", f"{_NODE} attempt retry_at_ms",
    metric="plaita_nodes_retried", timeline=True,
)  # fmt: skip
NODE_TIMED_OUT: Final[Event] = declare(
    "node_timed_out", "warning", "A node exceeded its timeout and was ended.", f"{_NODE} timeout_ms",
    metric="plaita_nodes_timed_out", timeline=True,
)  # fmt: skip

# Waits, events, tasks.
WAIT_ARMED: Final[Event] = declare(
    "wait_armed", "info", "A wait is open.", "run_id wait_id kind node_id deadline_ms", timeline=True
)
WAIT_RESOLVED: Final[Event] = declare(
    "wait_resolved", "info", "A wait was answered.", "run_id wait_id kind by", metric="plaita_waits_resolved",
    timeline=True,
)  # fmt: skip
WAIT_TIMED_OUT: Final[Event] = declare(
    "wait_timed_out", "info", "A wait reached its deadline.", "run_id wait_id node_id",
    metric="plaita_waits_timed_out", timeline=True,
)  # fmt: skip
ANSWER_REFUSED: Final[Event] = declare(
    "answer_refused", "warning", "An answer came for a wait that is gone or already answered; it was dropped.",
    "run_id wait_id by reason", metric="plaita_answers_refused", loss=True,
)  # fmt: skip
EVENT_PUBLISHED: Final[Event] = declare(
    "event_published", "info", "An event was stored and offered to the waits that match it.",
    "event_id type matched woken pending", metric="plaita_events_published",
)  # fmt: skip
EVENT_EXPIRED: Final[Event] = declare(
    "event_expired", "info", "Events older than their retention were removed.", "count",
    metric=Metric("plaita_events_expired", "sum", "count"), loss=True,
)  # fmt: skip
CANDIDATE_DECLINED: Final[Event] = declare(
    "candidate_declined", "debug", "An event matched a wait by type and its filter declined it.",
    "run_id wait_id event_id", metric="plaita_candidates_declined",
)  # fmt: skip
FAN_OUT_CONTINUED: Final[Event] = declare(
    "fan_out_continued", "debug", "One more chunk of the waits that match an event was woken.",
    "event_id woken pending", metric="plaita_fan_out_chunks",
)  # fmt: skip
TASK_OPENED: Final[Event] = declare(
    "task_opened", "info", "A person is asked for a decision.", "run_id task_id node_id deadline_ms",
    metric="plaita_tasks_opened", timeline=True,
)  # fmt: skip
TASK_VOTED: Final[Event] = declare(
    "task_voted", "info", "A person voted on a task.", "run_id task_id by approved", metric="plaita_tasks_voted",
    timeline=True,
)  # fmt: skip
TASK_DECIDED: Final[Event] = declare(
    "task_decided", "info", "A task is decided.", "run_id task_id outcome", metric="plaita_tasks_decided", timeline=True
)

# Processes.
WORKER_STARTED: Final[Event] = declare(
    "worker_started", "info", "A worker takes executions.", "holder store concurrency"
)
WORKER_DRAINING: Final[Event] = declare(
    "worker_draining", "info", "A worker takes nothing new and lets its executions reach their next commit.",
    "holder running",
)  # fmt: skip
WORKER_STOPPED: Final[Event] = declare("worker_stopped", "info", "A worker ended.", "holder handed_back")
SERVICE_CRASHED: Final[Event] = declare(
    "service_crashed", "error", "A loop of the process crashed; the process ends and its successor recovers.",
    "service error", metric="plaita_services_crashed",
)  # fmt: skip
HOLDER_RELEASED: Final[Event] = declare(
    "holder_released", "warning", "A dead process was seen; its executions are due again.", "holder runs",
    metric=Metric("plaita_runs_released", "sum", "runs"),
)  # fmt: skip
LEASE_LOST: Final[Event] = declare(
    "lease_lost", "warning", "An execution belongs to another process now; the work since the last commit is dropped.",
    "run_id holder", metric="plaita_leases_lost", loss=True,
)  # fmt: skip
RENEWAL_FAILED: Final[Event] = declare(
    "renewal_failed", "warning", "Leases could not be renewed; the next period tries again.", "holder error",
    metric="plaita_renewals_failed",
)  # fmt: skip
TAKEOVER_DELAYED: Final[Event] = declare(
    "takeover_delayed", "warning", "After a gap in the pulse of the store nobody takes over for one renewal period.",
    "gap_ms", metric="plaita_takeovers_delayed",
)  # fmt: skip
WORKER_LOST: Final[Event] = declare(
    "worker_lost", "error", "An execution was claimed again and again without progress and ended with an error.",
    f"{_RUN} tries", metric="plaita_runs_worker_lost", timeline=True, loss=True,
)  # fmt: skip
ATTEMPT_CRASHED: Final[Event] = declare(
    "attempt_crashed", "error", "An attempt ended in an unexpected error; the execution is due when its lease ends.",
    f"{_RUN} error", metric="plaita_attempts_crashed",
)  # fmt: skip
STORE_UNAVAILABLE: Final[Event] = declare(
    "store_unavailable", "error", "The store did not answer; the same request is sent again.", "store verb error",
    metric="plaita_store_unavailable",
)  # fmt: skip
SETTLE_REFUSED: Final[Event] = declare(
    "settle_refused", "warning", "A commit was refused because the claim, the sequence or a wait no longer fits.",
    "run_id answer", metric="plaita_settles_refused", loss=True,
)  # fmt: skip
SETTLE_REPEATED: Final[Event] = declare(
    "settle_repeated", "info", "A commit that had been stored was sent again; nothing changed.", "run_id seq",
    metric="plaita_settles_repeated",
)  # fmt: skip

# What is given up, clamped or replaced.
THREAD_ABANDONED: Final[Event] = declare(
    "thread_abandoned", "warning", "Blocking node code did not end in time; its thread is left behind and replaced.",
    _NODE, metric="plaita_threads_abandoned", loss=True,
)  # fmt: skip
PROCESS_KILLED: Final[Event] = declare(
    "process_killed", "warning", "The child process of a node did not end in time and was killed with its group.",
    _NODE, metric="plaita_processes_killed", loss=True,
)  # fmt: skip
DRAIN_CUT: Final[Event] = declare(
    "drain_cut", "warning", "A node ignored the request to stop and was cut at the end of the grace.", _NODE,
    metric="plaita_drains_cut", loss=True,
)  # fmt: skip
CALLBACK_FAILED: Final[Event] = declare(
    "callback_failed", "warning", "A callback raised; the execution goes on without it.", "run_id callback error",
    metric="plaita_callbacks_failed", loss=True,
)  # fmt: skip
BRANCH_DETACHED_FAILED: Final[Event] = declare(
    "branch_detached_failed", "warning", "A branch that nobody joins ended with an error.", f"{_RUN} branch kind",
    metric="plaita_branches_detached_failed", loss=True,
)  # fmt: skip
INPUT_CLIPPED: Final[Event] = declare(
    "input_clipped", "debug", "The recorded input of an attempt was cut to its cap; the call got all of it.",
    f"{_NODE} size", metric="plaita_inputs_clipped", loss=True,
)  # fmt: skip
TIMELINE_CLIPPED: Final[Event] = declare(
    "timeline_clipped", "info", "The live timeline of an execution reached its cap; its oldest entries left it.",
    "run_id count", metric=Metric("plaita_timeline_entries_clipped", "sum", "count"), loss=True,
)  # fmt: skip
RETRY_CLAMPED: Final[Event] = declare(
    "retry_clamped", "info", "A retry was not made because the remaining time of the flow is too short.", _NODE,
    metric="plaita_retries_clamped", timeline=True, loss=True,
)  # fmt: skip
FLOW_UNLOADABLE: Final[Event] = declare(
    "flow_unloadable", "error", "This process cannot load the definition of an execution and leaves it to others.",
    f"{_RUN} missing", metric="plaita_flows_unloadable", loss=True,
)  # fmt: skip
IMPORT_FAILED: Final[Event] = declare(
    "import_failed", "error", "A module with custom nodes could not be imported.", "module error",
    metric="plaita_imports_failed", loss=True,
)  # fmt: skip
DOUBT_RERUN: Final[Event] = declare(
    "doubt_rerun", "warning", "Nobody knows whether a call was performed; it is made again under the same key.", _NODE,
    metric="plaita_doubts_rerun", timeline=True, loss=True,
)  # fmt: skip
MESSAGE_REFUSED: Final[Event] = declare(
    "message_refused", "warning", "A message could not be accepted and is a dead letter now.", "message_id reason",
    metric="plaita_messages_refused", loss=True,
)  # fmt: skip
SETTING_UNKNOWN: Final[Event] = declare(
    "setting_unknown", "warning", "A variable has our prefix and means nothing here.", "variable hint",
    metric="plaita_settings_unknown", loss=True,
)  # fmt: skip
EVENT_FIELD_DROPPED: Final[Event] = declare(
    "event_field_dropped", "warning", "A field outside the declaration of its event was not reported.", "event field",
    metric="plaita_event_fields_dropped", loss=True,
)  # fmt: skip

# Care of the store.
RUNS_PRUNED: Final[Event] = declare(
    "runs_pruned", "info", "Executions past their retention were removed.", "count",
    metric=Metric("plaita_runs_pruned", "sum", "count"),
)  # fmt: skip
BACKUP_WRITTEN: Final[Event] = declare(
    "backup_written", "info", "A copy of the store was written.", "store target size"
)
RUN_STRANDED: Final[Event] = declare(
    "run_stranded", "error", "The audit found an execution that nobody would look at again.", "run_id status",
    metric="plaita_runs_stranded",
)  # fmt: skip
