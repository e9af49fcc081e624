"""What came for a run while its machine worked: kept until the machine takes it."""

from __future__ import annotations

from collections.abc import Iterable

from plaita.base.json import decode
from plaita.engine.effects import Elapsed, Event, Offer, Wake
from plaita.ports.values import Mail


class Unread:
    """Mail of one claim; ``ack`` is the number up to which it was taken."""

    def __init__(self, mailbox: Iterable[Mail] = ()) -> None:
        self.ack = 0
        self._mail: dict[int, Mail] = {}
        self.hear(mailbox)

    def __bool__(self) -> bool:
        return bool(self._mail)

    def hear(self, mailbox: Iterable[Mail]) -> None:
        """The mailbox as the store has it; what was taken already is passed over."""
        for mail in mailbox:
            if mail.number > self.ack:
                self._mail[mail.number] = mail

    def take(self, results: Iterable[Event]) -> list[Event]:
        """Everything in the order the machine takes it: mail by number, results of calls, then waits that are over.

        What came for a wait before it is over counts.
        """
        news: list[Event] = []
        over: list[Event] = []
        for number in sorted(self._mail):
            mail = self._mail.pop(number)
            self.ack = max(self.ack, number)
            match mail.kind:
                case "wake":
                    news.append(Wake(mail.wait_id, decode(mail.data)))
                case "candidate":
                    news.append(Offer(mail.wait_id, mail.event, decode(mail.data)))
                case "timeout":
                    over.append(Elapsed(mail.wait_id))
        return [*news, *results, *over]
