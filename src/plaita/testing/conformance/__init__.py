"""What every backend must do, as test classes to subclass: each needs the fixtures ``backend`` and ``clock``.

``QuotaContract`` also needs ``capped``, a backend on the same clock with a cap of one running run.
"""

from plaita.testing.conformance.adopting import AdoptContract
from plaita.testing.conformance.cells import RunCells, WaitCells
from plaita.testing.conformance.children import ChildContract
from plaita.testing.conformance.dead_letters import DeadLetterContract
from plaita.testing.conformance.definitions import NeededContract, UnusedContract
from plaita.testing.conformance.desk import FlowContract, TaskContract
from plaita.testing.conformance.events import EventContract
from plaita.testing.conformance.filters import FilterContract
from plaita.testing.conformance.inbox import InboxCells, InboxContract
from plaita.testing.conformance.leases import LeaseContract
from plaita.testing.conformance.queries import ProcessContract, QueryContract
from plaita.testing.conformance.quota import QuotaContract
from plaita.testing.conformance.resume_messages import ResumeMessageContract
from plaita.testing.conformance.runs import ClaimContract, LifeContract, SettleContract
from plaita.testing.conformance.stage import HandClock
from plaita.testing.conformance.start_messages import StartMessageContract

__all__ = [
    "AdoptContract", "ChildContract", "ClaimContract", "DeadLetterContract", "EventContract", "FilterContract",
    "FlowContract", "HandClock", "InboxCells", "InboxContract", "LeaseContract", "LifeContract", "NeededContract",
    "ProcessContract", "QueryContract", "QuotaContract", "ResumeMessageContract", "RunCells", "SettleContract",
    "StartMessageContract", "TaskContract", "UnusedContract", "WaitCells",
]  # fmt: skip
