"""The process of the server: CPU time, memory, open files."""

import os
import resource

from queueber.model import MetricFamily, Sample
from queueber.service.measures import metrics

_STATM = "/proc/self/statm"
_OPEN_FILES = "/proc/self/fd"


def process_families() -> list[MetricFamily]:
    """What the system does not tell is left out."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    families = [
        MetricFamily(metrics.CPU, [Sample((), (used.ru_utime + used.ru_stime,))]),
        MetricFamily(metrics.OPEN_FILES_MAX, [Sample((), (files_max,))]),
    ]
    if os.path.exists(_STATM):
        with open(_STATM) as statm:
            pages = int(statm.read().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        families.append(MetricFamily(metrics.MEMORY, [Sample((), (memory,))]))
    if os.path.exists(_OPEN_FILES):
        count = len(os.listdir(_OPEN_FILES))
        families.append(MetricFamily(metrics.OPEN_FILES, [Sample((), (count,))]))
    return families
