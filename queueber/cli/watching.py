"""Long work of the server, with a bar that moves meanwhile."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from queueber.client import Client
from queueber.model import Stats

SHOW_SECONDS = 0.25
"""How often a bar moves."""


def watched(
    client: Client,
    queue: str,
    words: str,
    total: int,
    work: Callable[[], int],
    measure: Callable[[Stats], int],
) -> int:
    """Do the work; on a terminal, show meanwhile how far it is by the queue's own count."""
    if not sys.stderr.isatty():
        return work()
    from queueber.cli.progress import CountBar

    watching = client.queue(queue)
    start = measure(watching.stats())
    with ThreadPoolExecutor(1) as pool, CountBar(words) as bar:
        working = pool.submit(work)
        try:
            while not wait([working], SHOW_SECONDS).done:
                bar.show(measure(watching.stats()) - start, total)
        except BaseException:
            # Else the pool would wait for the work to end.
            client.close()
            raise
        bar.show(working.result(), total)
        return working.result()
