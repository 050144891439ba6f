"""What the system tells of the process."""

from queueber.service.measures.process import process_families


def test_process_has_used_time_memory_and_files() -> None:
    found = {family.name: family.samples[0].value for family in process_families()}

    assert found.keys() == {
        "queueber_process_cpu_seconds_total",
        "queueber_process_resident_memory_bytes",
        "queueber_process_open_fds",
        "queueber_process_max_fds",
    }
    assert all(value > 0 for value in found.values())
