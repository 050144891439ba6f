"""Rankings: the most active have places, and keep them while others are hardly more active."""

from queueber.service.measures.ranking import Ranking


def ranking(**scores: float) -> Ranking[str]:
    ranked: Ranking[str] = Ranking()
    for key, score in scores.items():
        ranked.add(key, score)
    return ranked


def test_all_have_places_while_there_are_enough() -> None:
    places: dict[str, None] = {}

    ranking(a=0, b=5).give_places(places, 2)

    assert set(places) == {"a", "b"}


def test_most_active_have_the_places() -> None:
    places: dict[str, None] = {}

    ranking(a=1, b=5, c=3).give_places(places, 2)

    assert set(places) == {"b", "c"}


def test_place_is_kept_from_others_that_are_hardly_more_active() -> None:
    ranked, places = ranking(a=10, b=10), dict.fromkeys(["a", "b"])
    ranked.add("c", 19)

    ranked.give_places(places, 2)
    assert set(places) == {"a", "b"}

    ranked.add("c", 2)
    ranked.give_places(places, 2)
    assert set(places) == {"b", "c"}


def test_place_of_one_that_is_forgotten_is_free() -> None:
    ranked, places = ranking(a=10, b=10, c=1), dict.fromkeys(["a", "b"])

    ranked.forget("a")
    ranked.give_places(places, 2)

    assert set(places) == {"b", "c"}


def test_scores_fade() -> None:
    ranked, places = ranking(a=100, b=100), dict.fromkeys(["a"])
    for _ in range(200):
        ranked.fade()
    ranked.add("b", 100)

    ranked.give_places(places, 1)

    assert set(places) == {"b"}


def test_only_those_that_are_kept_have_scores() -> None:
    ranked = ranking(a=1, b=2, c=3)

    ranked.keep(["a", "c", "unknown"])
    assert (len(ranked), "b" in ranked) == (3, True)
    ranked.keep(["a", "c"])

    assert (len(ranked), "b" in ranked, ranked.best(9)) == (2, False, ["c", "a"])
