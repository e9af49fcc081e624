"""The documented decisions of a worker that is handed a message, row by row, and what becomes of them here.

``verdict``: ``kept``; ``replaced`` by the decision named in ``by``; ``impossible``: the situation cannot occur. Every
row that can occur names the test in ``test_consumer_table.py`` that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Row:
    number: int
    situation: str
    verdict: Literal["kept", "replaced", "impossible"]
    words: str
    """What happens here, or why it cannot."""
    by: str = ""
    test: str = ""


def kept(number: int, situation: str, words: str, test: str) -> Row:
    return Row(number, situation, "kept", words, test=test)


def replaced(number: int, by: str, situation: str, words: str, test: str) -> Row:
    return Row(number, situation, "replaced", words, by, test)


def impossible(number: int, situation: str, words: str) -> Row:
    return Row(number, situation, "impossible", words)


ROWS: Final = (
    replaced(1, "R19", "completed, suspended or cancelled normally",
             "acknowledged when the start is stored, not at the end; the row says what was reached", "row_01"),
    replaced(2, "R5", "retryable node failure, budget left",
             "the run is due again after its backoff; no message is sent for it", "row_02"),
    impossible(3, "as 2, enqueue fails", "nothing is sent: the backoff is in the step that records the failure"),
    replaced(4, "R5", "as 2, force-stopped during back-off",
             "no thread waits: whoever works when the backoff is over takes the run", "row_04"),
    replaced(5, "R5", "as 2, tombstone found", "a run that is under way is not deleted", "row_05"),
    kept(6, "retryable failure, budget reached, in step loop", "the row is error", "row_06"),
    replaced(7, "R1", "same, raised from the resume call", "there is one path: as row 6", "row_06"),
    kept(8, "deterministic node failure", "the row is error, and retries of it are counted", "row_08"),
    replaced(9, "R1", "any failure in the first engine call of a start", "as row 6: the row is error, once", "row_09"),
    replaced(10, "R19", "lease conflict, holder running; start/continue/retry",
             "acknowledged: the run is there and goes on", "row_10"),
    replaced(11, "R4", "lease conflict, holder not registered or draining",
             "as row 10; a lease alone says who holds a run, and the next claim takes it when it is over", "row_11"),
    replaced(12, "R4", "lease conflict, liveness unknown", "as row 11", "row_11"),
    replaced(13, "R4", "lease conflict, this worker has no registry", "as row 11", "row_11"),
    replaced(14, "R19", "lease conflict, resume type event/timeout/cancel",
             "stored in the mailbox of the run and acknowledged; the holder reads it", "row_14"),
    kept(15, "lost lease mid-run", "nothing is written", "row_15"),
    kept(16, "resume protocol error", "acknowledged and counted, the row unchanged", "row_16"),
    replaced(17, "R19", "event/timeout carrier on a running row past its suspension point",
             "acknowledged and counted; the run goes on by itself", "row_17"),
    kept(18, "protocol error but row or definition read fails", "the message stays", "row_18"),
    impossible(19, "row save returned false", "a step is stored whole or not at all; unknown outcomes are sent again"),
    impossible(20, "context not serializable", "a result that is no JSON is refused where it arises"),
    impossible(21, "service task RPUSH failed", "a wait is armed in the step that parks its run"),
    kept(22, "row load error or corrupt row", "the message stays", "row_18"),
    replaced(23, "R3", "flow definition read error or corrupt",
             "the start is stored; a process that cannot load the definition leaves the run to others", "row_23"),
    replaced(24, "R2", "flow not found or definition invalid", "acknowledged; the row is error and says so", "row_24"),
    replaced(25, "R9", "resume of a missing row, or flow id mismatch", "a dead letter", "row_25"),
    replaced(26, "R9", "start id belongs to another flow", "a dead letter, the row is kept", "row_26"),
    replaced(27, "R3", "definition hash mismatch", "the run goes on with the definition it began with", "row_27"),
    kept(28, "malformed payload", "a dead letter that quotes 500 characters", "row_28"),
    replaced(29, "R9", "unknown task type", "a dead letter", "row_29"),
    kept(30, "schema too new", "a dead letter, once", "row_30"),
    kept(31, "family mismatch", "left pending; past the age a dead letter", "row_31"),
    replaced(32, "R19", "budget mismatch on reclaim", "carried out: limits are those of whoever carries out", "row_32"),
    replaced(33, "R8", "over quota", "acknowledged; the run waits for its slot", "row_33"),
    replaced(34, "R9", "tenant disabled or epoch refused", "a dead letter instead of a drop", "row_34"),
    impossible(35, "not affine or not my target, count <= 3", "every process of a queue may take a run of it"),
    impossible(36, "as 35, count > 3, row non-terminal", "as row 35"),
    impossible(37, "as 35, count > 3, row terminal", "as row 35"),
    impossible(38, "as 35, count > 3, no row", "as row 35"),
    impossible(39, "as 35, counter unavailable or enqueue failed", "as row 35"),
    replaced(40, "R9", "tombstoned execution", "a dead letter", "row_40"),
    replaced(41, "R9", "over-age or age unknown", "a dead letter; an entry always has an age", "row_41"),
    kept(42, "terminal row, non-retry resume; or retry over budget", "acknowledged, the row is kept", "row_42"),
    kept(43, "suspended row + continue/retry", "acknowledged, the row is kept", "row_43"),
    kept(44, "suspended + continue/retry with cancel flag", "acknowledged, the row is cancelled", "row_44"),
    impossible(45, "message read before drain, returned after", "a message is taken and carried out in one step"),
    kept(46, "reclaim at times_delivered >= max", "a dead letter; it stays while its run is under way", "row_46"),
    kept(47, "Redis error inside the loop", "counted; the loop goes on", "row_47"),
    kept(48, "any other exception", "the message stays and is delivered again", "row_18"),
)  # fmt: skip
