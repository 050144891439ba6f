from queueber.rates import Rates


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rates = Rates()

    found = [rates.of("q", float(at), [10 * at, at]) for at in range(20)]

    assert found[0] == (0.0, 0.0)
    assert found[1:] == [(10.0, 1.0)] * 19


def test_a_burst_is_forgotten_after_a_few_seconds() -> None:
    rates = Rates()
    for at in range(3):
        rates.of("q", float(at), [0])

    found = [rates.of("q", float(at), [100])[0] for at in range(3, 10)]

    assert found[0] == round(100 / 3, 2)
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0.0


def test_totals_that_fall_are_those_of_a_new_queue_of_that_name() -> None:
    rates = Rates()
    rates.of("q", 0.0, [1000])

    assert rates.of("q", 1.0, [5]) == (0.0,)
    assert rates.of("q", 2.0, [10]) == (5.0,)


def test_two_looks_at_almost_the_same_time_say_nothing() -> None:
    rates = Rates()
    rates.of("q", 0.0, [0])

    assert rates.of("q", 0.001, [50]) == (0.0,)


def test_what_is_gone_is_forgotten() -> None:
    rates = Rates()
    for name in ("kept", "gone"):
        rates.of(name, 0.0, [0])

    rates.keep({"kept"})

    assert rates.of("kept", 1.0, [7]) == (7.0,)
    assert rates.of("gone", 1.0, [7]) == (0.0,)
