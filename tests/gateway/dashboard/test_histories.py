from queueber.gateway.dashboard.histories import thin


def test_few_points_stay_as_they_are() -> None:
    assert thin([1.0, 2.0]) == [1.0, 2.0]
    assert thin([]) == []


def test_peaks_stay_when_points_are_joined() -> None:
    values = [0.0] * 360
    values[123] = 9.0

    found = thin(values)

    assert len(found) == 60
    assert found == [9.0 if at == 123 // 6 else 0.0 for at in range(60)]
