"""Progress of long calls: on a terminal a bar moves while the server works."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from queueber import Client
from queueber.model import Stats

REFRESH_SECONDS = 0.25
"""How often a bar moves."""


def with_progress(
    client: Client,
    queue: str,
    title: str,
    total: int,
    work: Callable[[], int],
    measure: Callable[[Stats], int],
) -> int:
    """Run `work`; on a terminal, show how far it is by a counter of the queue's statistics."""
    if not sys.stderr.isatty():
        return work()
    from queueber.cli.output.progress_bars import CountBar

    watched = client.queue(queue, must_exist=True)
    start = measure(watched.stats())
    with ThreadPoolExecutor(1) as pool, CountBar(title) as bar:
        working = pool.submit(work)
        try:
            while not wait([working], REFRESH_SECONDS).done:
                bar.show(measure(watched.stats()) - start, total)
        except BaseException:
            # Otherwise leaving the pool would wait until the work is done.
            client.close()
            raise
        bar.show(working.result(), total)
        return working.result()
