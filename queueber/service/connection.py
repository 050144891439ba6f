"""What is known of one connection: its calls, its answers, how far behind it is."""

from collections.abc import Callable

from queueber.limits import CONNECTION_REFUSALS_MAX
from queueber.service.outbox import Outbox


class Connection:
    """Also what leases are bound to when a caller asks for that."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.calls = 0
        """Under way, those that wait among them."""
        self.arriving = 0
        self.begun = self.begun_ever = 0
        """Calls in this turn of the loop, and in all."""
        self.queues = 0
        """Capabilities of queues that it holds."""
        self.delay_seconds = 0.0
        """How long its calls lie here before anybody looks at them."""
        self.refusals = 0
        self.hang_up: Callable[[], None] = lambda: None
        """Ends it, once what is under way has been answered."""
        self.shed = 0.0
        """Calls that are to be refused because it is too long."""

    def refused(self) -> None:
        """A call was refused. Who has been refused too often has to connect again."""
        self.refusals += 1
        if self.refusals == CONNECTION_REFUSALS_MAX:
            self.hang_up()
