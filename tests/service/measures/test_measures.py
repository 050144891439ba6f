"""All measures together: the server's own, those that are counted by hand, those of others."""

import pytest

from queueber.errors import ResourceExhausted
from queueber.limits import HISTORY_NAMES_MAX
from queueber.model import HistorySpan, MetricFamily, Sample
from queueber.service.measures import metrics
from queueber.service.measures.metrics import METRICS
from tests.service.measures.test_queues import values_of
from tests.support.service_rig import HeldSync, ServiceRig, on_service, run_on_service
from tests.support.virtual_loop import turns


@on_service()
async def test_every_metric_is_of_the_table_and_there_once(rig: ServiceRig) -> None:
    families = rig.service.measures.families()

    names = [family.name for family in families]
    assert len(set(names)) == len(names)
    assert all(family.metric is METRICS[family.name] for family in families)
    for family in families:
        labels = [sample.label_values for sample in family.samples]
        assert len(set(labels)) == len(labels)
        assert all(len(each) == len(family.metric.labels) for each in labels)


@on_service()
async def test_others_may_add_their_measures(rig: ServiceRig) -> None:
    rig.service.measures.sources.append(
        lambda: [MetricFamily(metrics.CONNECTIONS, [Sample((), (3,))])]
    )

    assert values_of(rig, "queueber_connections") == {(): 3}


@on_service()
async def test_too_many_names_are_refused(rig: ServiceRig) -> None:
    names = ["q"] * (HISTORY_NAMES_MAX + 1)

    with pytest.raises(ResourceExhausted, match="queues: the call has 201; the limit is 200"):
        rig.service.measures.histories(names, [], HistorySpan.HOUR, 0, rig.session)
    with pytest.raises(ResourceExhausted, match="topics: the call has 201"):
        rig.service.measures.histories([], names, HistorySpan.HOUR, 0, rig.session)


def test_calls_that_share_a_sync_are_counted() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        adds = [rig.begin(rig.add(b"a")) for _ in range(3)]
        await turns()
        sync.let_all()
        for add in adds:
            await add

        commits = rig.service.shell.commit_measures
        assert commits is not None
        assert (commits.calls.count, commits.calls.sum) == (1, 3)
        assert (commits.items.count, commits.items.sum) == (1, 3)
        names = {family.name for family in rig.service.measures.families()}
        assert "queueber_commit_group_calls" in names

    run_on_service(body, sync=sync)
