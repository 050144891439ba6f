"""Streams of Queueber: its server, and a gateway of one process or more."""

from bench.peers.ours_http import QueueberHttp
from bench.peers.results import OURS


class QueueberStreams(QueueberHttp):
    library = ""
    notes = "a server and a gateway, each a process of its own"

    def __init__(self, processes: int) -> None:
        super().__init__(processes)
        self.name = OURS if processes == 1 else f"{OURS}, {processes} gateway processes"
