"""A check of a fleet: which clusters it reads, at what cost, and what it concludes where it cannot read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import RateLimiter
from shared.app.check import check as checks
from shared.app.outbox import request_whole_check, send, send_all
from shared.app.sweep import sweep
from shared.azure.rate_limits import Limit
from shared.cluster.failures.errors import Unavailable
from shared.cluster.findings.health import HealthCondition
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.queues.messages import CHECK_SESSIONS, CHECKED_TOGETHER, CheckMessage, SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_retry
from shared.kubernetes.kubeconfig import ApiServer
from shared.ports import Message
from shared.ports.azure import GetCluster
from shared.resource_ids import ClusterId
from tests.support import one_cluster
from tests.support.calls_inside import counted
from tests.support.checks import check, condition, pass_time, take_tokens
from tests.support.flux_components import installed, named
from tests.support.one_cluster import ENTRA, ONE, api, fetched, ready, record
from tests.support.pipeline_runs import another_worker_for_each_message, phases, record_of
from tests.support.replaced_ports import Around, around
from tests.support.sweeps import several

pytestmark = pytest.mark.lives

PLATFORM = HealthCondition.PLATFORM
EXTRA = tuple(named("ConfigMap", f"map-{number}", data={"a": "b"}) for number in range(20))


def test_a_healthy_cluster_has_both_conditions_with_the_age_of_the_fact() -> None:
    cloud = ready()
    check(cloud)
    first = condition(record(cloud), PLATFORM)
    assert (first.status, first.message) == (True, "1 of 1 nodes are ready")
    check(cloud)
    second = condition(record(cloud), PLATFORM)
    assert second.since == first.since
    assert second.verified is not None
    assert first.verified is not None
    assert second.verified > first.verified


def test_a_check_writes_nothing_and_reads_by_kinds_and_not_by_objects() -> None:
    few, many = installed(*EXTRA[:2]), installed(*EXTRA)
    asked = []
    for cloud in (few, many):
        with counted(cloud) as calls:
            check(cloud)
        assert condition(record(cloud)).status is True
        assert (calls.applied, calls.written) == ([], [])
        asked.append((Counter(calls.listed), len(calls.read), calls.tried))
    assert asked[0] == asked[1]
    listed, _, _ = asked[0]
    assert set(listed) >= {"GitRepository", "Kustomization", "Node", "ConfigMap"}
    assert set(listed.values()) == {1}


@pytest.mark.parametrize(("extra", "kubeconfigs"), [(ENTRA, 1), ("", 2)])
def test_a_token_opens_a_known_api_server_and_any_other_costs_a_kubeconfig(
    extra: str, kubeconfigs: int
) -> None:
    cloud = ready(extra)
    another_worker_for_each_message(cloud)
    check(cloud)
    assert condition(record(cloud)).status is True
    assert fetched(cloud) == kubeconfigs


def test_a_check_leaves_half_of_the_kubeconfigs_to_the_jobs() -> None:
    cloud = ready()
    another_worker_for_each_message(cloud)
    take_tokens(cloud, ONE, 30)
    send_all(checks_of(["one"], "a check"), cloud.ports)
    cloud.run(seconds=1)
    assert record(cloud).condition(HealthCondition.FLUX) is None
    cloud.run(seconds=200, until=lambda: record(cloud).condition(HealthCondition.FLUX) is not None)
    assert condition(record(cloud)).status is True


def test_a_cluster_that_no_token_is_left_for_holds_up_no_other_one() -> None:
    cloud = several()
    another_worker_for_each_message(cloud)
    take_tokens(cloud, ONE, 30)
    send_all(checks_of(["a", "b", "c"], "a check"), cloud.ports)
    cloud.run(seconds=1)
    assert [read_of(cloud, name) for name in "abc"] == [False, True, True]
    cloud.run(seconds=200, until=lambda: read_of(cloud, "a"))
    assert read_of(cloud, "a")


def read_of(cloud: MemoryCloud, name: str) -> bool:
    found = record_of(cloud, name)
    return found.condition(HealthCondition.FLUX) is not None


def test_a_cluster_whose_token_somebody_takes_first_is_read_once_there_is_another() -> None:
    cloud = ready()
    another_worker_for_each_message(cloud)
    spare = RateLimiter.has_spare

    def then_taken(self: RateLimiter, limit: Limit, subscription: str) -> bool:
        found = spare(self, limit, subscription)
        take_tokens(cloud, ONE, 60 if found else 0)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RateLimiter, "has_spare", then_taken)
        send_all(checks_of(["one"], "a check"), cloud.ports)
        cloud.run(seconds=1)
    assert not read_of(cloud, "one")
    cloud.run(seconds=200, until=lambda: read_of(cloud, "one"))
    assert read_of(cloud, "one")


def test_a_cluster_that_does_not_answer_is_unknown_and_never_healthy() -> None:
    cloud = ready(ENTRA)
    check(cloud)
    cloud.kubernetes.stop(ONE)
    another_worker_for_each_message(cloud)
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (None, "NotRead")
    assert found.message.startswith("Unavailable: ")
    assert phases(cloud) == {"one": Phase.READY}
    assert one_cluster.advice(cloud).startswith(
        "Find out why the cluster cannot be read; `roadstead refresh one`"
    )
    assert record(cloud).observation.api_server is None, "the next check asks AKS where the server is"
    pass_time(cloud, 4000)
    check(cloud)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_cluster_that_somebody_created_again_is_checked_at_its_new_address() -> None:
    cloud = ready(ENTRA)
    wrong = ApiServer("https://one-former.example:443", "an authority")
    cloud.state.save(replace(record(cloud), observation=replace(record(cloud).observation, api_server=wrong)))
    another_worker_for_each_message(cloud)
    check(cloud)
    assert condition(record(cloud)).status is None
    check(cloud)
    assert condition(record(cloud)).status is True
    assert record(cloud).observation.api_server not in (None, wrong)


def test_a_node_that_is_not_ready_for_long_is_named() -> None:
    cloud = ready()
    (node,) = api(cloud).list("v1", "Node")
    lost = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    since = cloud.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{**lost, "reason": "NodeStatusUnknown", "lastTransitionTime": since}]
    status = {**node["status"], "conditions": conditions}
    found = checks_of_nodes(cloud, {**node, "status": status})
    assert (found.status, found.reason) == (False, "NodeNotReady")
    assert found.message.startswith(f"the Node {node['metadata']['name']}: not ready since ")
    assert found.message.endswith("Kubelet stopped posting node status.")


def checks_of_nodes(cloud: MemoryCloud, node: Any) -> Any:
    """Return what a check says of the nodes when the API server lists this one."""
    inner = cloud.ports.kubernetes

    def connect(cluster: ClusterId, **kwargs: Any) -> Any:
        opened = inner.connect(cluster, **kwargs)

        def listed(api_version: str, kind: str, **options: str) -> Any:
            return [node] if kind == "Node" else opened.list(api_version, kind, **options)

        return Around(opened, list=listed)

    kubernetes: Any = Around(inner, connect=connect)
    cloud.with_ports(lambda ports: replace(ports, kubernetes=kubernetes))
    check(cloud)
    return condition(record(cloud), PLATFORM)


def test_a_record_that_somebody_writes_meanwhile_is_left_to_the_next_check() -> None:
    cloud = ready()
    state = cloud.state

    def written_first(after: ClusterRecord) -> ClusterRecord:
        state.save(accept_retry(record(cloud), now=cloud.clock()))
        return state.save(after)

    around: Any = Around(state, save=written_first)
    checks.handle(CheckMessage(check="1", clusters=("one",)), replace(cloud.ports, state=around))
    assert record(cloud).condition(HealthCondition.FLUX) is None


def test_a_sweep_that_ends_at_the_same_moment_loses_nothing_and_neither_does_the_check() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    inner = cloud.ports.azure

    def checked_first(operation: Any) -> Any:
        found = inner.call(operation)
        if isinstance(operation, GetCluster):
            checks.handle(CheckMessage(check="1", clusters=("one",)), cloud.ports)
        return found

    azure: Any = Around(inner, call=checked_first)
    part = SweepRequest(sweep="1", clusters=("one",))
    sweep.handle(part, replace(cloud.ports, azure=azure))
    assert record(cloud).finding == "ClusterStopped"
    assert condition(record(cloud)).status is None


def test_a_check_waits_for_a_state_that_does_not_answer_and_gives_up_in_the_end() -> None:
    cloud, sent = MemoryCloud(), list[Message]()

    class Silent:
        def summaries(self) -> Any:
            raise Unavailable("the tables do not answer")

    state: Any = Silent()
    ports = replace(
        cloud.ports, state=state, jobs=Around(cloud.ports.jobs, send=lambda *messages: sent.extend(messages))
    )
    checks.handle(CheckMessage(check="1"), ports)
    (again,) = sent
    assert CheckMessage.model_validate_json(again.body) == CheckMessage(check="1", attempt=1)
    assert again.at is not None
    with pytest.raises(Unavailable):
        checks.handle(CheckMessage(check="1", attempt=checks.MOST_WAITS), ports)


def test_a_large_fleet_is_checked_in_messages_of_some_clusters_in_few_sessions() -> None:
    cloud, sent = MemoryCloud(), list[Message]()

    names = [f"cluster-{number:04}" for number in range(1000)]
    send_all(
        checks_of(names, "a check"),
        replace(cloud.ports, jobs=Around(cloud.ports.jobs, send=lambda *messages: sent.extend(messages))),
    )
    parts = [CheckMessage.model_validate_json(message.body).clusters for message in sent]
    assert [name for part in parts for name in part] == names
    assert max(map(len, parts)) == CHECKED_TOGETHER
    assert len({message.session for message in sent}) == CHECK_SESSIONS
    assert len({message.id for message in sent}) == len(sent)


def test_a_check_of_the_whole_fleet_delays_no_check_that_somebody_asks_for() -> None:
    cloud, sent = MemoryCloud(), list[Message]()

    ports = replace(cloud.ports, jobs=Around(cloud.ports.jobs, send=lambda *messages: sent.extend(messages)))
    names = [f"cluster-{number:04}" for number in range(1000)]
    request_whole_check(ports)
    (begins,) = sent
    whole = CheckMessage.model_validate_json(begins.body)
    send_all(checks_of(names, whole.check), ports)
    send(whole.model_copy(update={"clusters": ("one",), "attempt": 1}), ports)
    of_fleet = {message.session for message in sent}
    assert len(of_fleet) == CHECK_SESSIONS
    sent.clear()
    for name in names[:100]:
        send_all(checks_of([name], f"paths:{name}"), ports)
        send(CheckMessage(check="12345678", clusters=(name,), at=cloud.clock()), ports)
    others = {message.session for message in sent}
    assert len(others) == CHECK_SESSIONS
    assert not others & of_fleet


def test_a_cluster_whose_job_works_on_it_is_left_to_the_job() -> None:
    cloud = ready()
    saved = cloud.state.save(replace(record(cloud), phase=Phase.UPDATING))
    check(cloud)
    checks.handle(CheckMessage(check="1", clusters=("one", "nobody")), cloud.ports)
    assert record(cloud).etag == saved.etag


def test_a_cluster_that_is_not_understood_keeps_no_other_one_from_its_check() -> None:
    cloud = several()
    connect = cloud.ports.kubernetes.connect

    def strange(cluster: ClusterId, *rest: Any, **more: Any) -> Any:
        if cluster.name == "a":
            raise ValueError("a token")
        return connect(cluster, *rest, **more)

    around(cloud, "kubernetes", connect=strange)
    check(cloud)
    found = {cluster.name: condition(cluster, PLATFORM) for cluster in cloud.state.clusters()}
    assert (found["a"].status, found["b"].status, found["c"].status) == (None, True, True)
    assert found["a"].message.endswith("ValueError: the log has the details")
