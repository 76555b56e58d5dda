"""What a sweep costs: ``python -m bench.sweep [CLUSTERS [SUBSCRIPTIONS]]``.

A fleet of Ready clusters is swept as it is, after somebody changed a tag of a hundredth of its clusters, and
after somebody stopped them too. Counted are the calls to Azure next to the lower bound, which is the pages of
the lists, and the calls to the state, of which one returns a thousand entities at most. Seconds are of the
processor, megabytes the most that the process has; next to them is what reading the lists and the records
alone takes, with the same Azure in memory.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from bench.counting import Call, Counted, Watched
from localcloud.azure.world.arm_keys import key_of
from localcloud.azure.world.arm_resources import ArmCluster
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_sweep
from shared.app.sweep.sweep import read_list
from shared.azure.differences import live_digest
from shared.cluster.divergence.verification import Verification
from shared.kubernetes.inside import facts_of
from shared.language.desired import Desired
from shared.resource_ids import ClusterId
from tests.support.one_cluster import ONE, ready, record

LATER = 600.0
ROWS = 1000
"""Of a query of tables, in one answer."""
EVERY = 100
"""Of so many clusters one is changed by hand."""


@dataclass(frozen=True)
class Sweep:
    """The calls to Azure, the pages that there are, the calls to the state, messages, findings and drift."""

    azure: Counter[str]
    pages: int
    calls: Counter[str]
    messages: int
    found: int
    drifted: int
    seconds: float
    requests: int


def fleet_of(clusters: int, subscriptions: int) -> MemoryCloud:
    """Return a fleet of so many Ready clusters, spread over subscriptions: copies of one that was created."""
    cloud = ready()
    engine, template = cloud.azure.engine, record(cloud)
    live = engine.clusters.pop(key_of(ONE))
    cloud.state.delete(template)
    engine.subscriptions = tuple(
        f"00000000-0000-0000-0000-{number + 1:012}" for number in range(subscriptions)
    )
    for number in range(clusters):
        name, subscription = f"cluster-{number:05}", engine.subscriptions[number % subscriptions]
        cluster = ClusterId(subscription, f"rg-{name}", name)
        spec = template.document["spec"] | {"subscriptionId": subscription, "resourceGroup": f"rg-{name}"}
        document = {**template.document, "name": name, "spec": spec}
        tags = {**live.document["tags"], "roadstead-cluster": name}
        shown: dict[str, Any] = {**live.document, "id": cluster.resource, "name": name, "tags": tags}
        shown["properties"] = dict(live.properties)
        engine.app_group(subscription, cluster.resource_group)
        engine.clusters[key_of(cluster)] = ArmCluster(cluster, shown, live.pools)
        found = cloud.azure.get_cluster(cluster)
        verified, facts = Verification(live_digest(found)), facts_of(Desired(document), found)
        copied = replace(
            template,
            name=name,
            document=document,
            observation=replace(template.observation, verified=verified, facts=facts),
            etag="",
        )
        cloud.state.save(copied)
    return cloud


def measure(cloud: MemoryCloud) -> Sweep:
    """Let a sweep run to its end."""
    cloud.clock.advance(LATER)
    counted: Any = Counted(cloud.state)
    state, calls = counted, Counter[str]()

    def count(call: Call) -> None:
        calls[call.given[0].name] += 1

    azure: Any = Watched(cloud.ports.azure, count)
    cloud.with_ports(lambda ports: replace(ports, state=state, azure=azure))
    sent = cloud.broker.counts("plans")
    size, engine = cloud.azure.engine.page_size, cloud.azure.engine
    counted = Counter(key.subscription for key in engine.clusters)
    began = time.process_time()
    request_whole_sweep(cloud.ports)
    messages = 0
    while cloud.state.sweep().finished is None or cloud.broker.counts("plans") != sent:
        messages += cloud.step()
        if not cloud.broker.counts("plans").active:
            cloud.clock.advance(30)
    summaries = cloud.state.summaries()
    found = sum(bool(summary.finding) for summary in summaries)
    drifted = sum(bool(summary.divergence.drifted) for summary in summaries)
    pages = sum(-(-number // size) for number in counted.values())
    seconds = time.process_time() - began
    requests = state.calls.total() + sum(rows // ROWS for rows in state.records.values())
    return Sweep(calls, pages, state.calls, messages, found, drifted, seconds, requests)


def read_alone(cloud: MemoryCloud) -> float:
    """Read what a sweep has to read, and conclude nothing; return the seconds."""
    began = time.process_time()
    for subscription in cloud.azure.engine.subscriptions:
        read_list(subscription, cloud.ports)
    cloud.state.summaries()
    return time.process_time() - began


def megabytes() -> float:
    """Return the most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tag_some(cloud: MemoryCloud) -> int:
    """Add a tag to one of a hundred clusters by hand; return how many."""
    some = [*cloud.azure.engine.clusters.values()][::EVERY]
    for cluster in some:
        cluster.document["tags"] = {**cluster.document["tags"], "by-hand": "x"}
    return len(some)


def stop_some(cloud: MemoryCloud) -> int:
    """Stop one of a hundred clusters by hand; return how many."""
    some = [*cloud.azure.engine.clusters.values()][::EVERY]
    for cluster in some:
        cluster.properties["powerState"] = {"code": "Stopped"}
    return len(some)


def main() -> None:
    """Measure a fleet as it is, and with one of a hundred clusters changed."""
    given = [int(argument) for argument in sys.argv[1:]]
    clusters, subscriptions = [*given, *(10_000, 250)[len(given) :]]
    cloud = fleet_of(clusters, subscriptions)
    print(f"{clusters} clusters in {subscriptions} subscriptions, before: {megabytes():.0f} MB")
    print(f"  reading alone: {read_alone(cloud):.1f} s, {megabytes():.0f} MB")
    changes = {"as it is": None, "with drift of one of a hundred": tag_some, "and those stopped": stop_some}
    for what, change in changes.items():
        if change is not None:
            change(cloud)
        sweep = measure(cloud)
        azure = ", ".join(f"{name} {number}" for name, number in sorted(sweep.azure.items()))
        state = ", ".join(f"{name} {number}" for name, number in sorted(sweep.calls.items()))
        print(f"{what}: {sweep.seconds:.1f} s, {megabytes():.0f} MB")
        print(f"  {sweep.found} found, {sweep.drifted} differ from git")
        print(f"  calls to Azure: {azure}; pages of the lists: {sweep.pages}; messages: {sweep.messages}")
        print(f"  calls to the state: {state}; requests of tables: {sweep.requests}")


if __name__ == "__main__":
    main()
