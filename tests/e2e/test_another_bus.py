"""A drill: from Service Bus Standard to Premium, with jobs in the queues. The new namespace has none of them.

Azure copies queues and no messages to a namespace of the other tier, and a migration moves no role assignment
(learn.microsoft.com/azure/service-bus-messaging/service-bus-migrate-standard-premium). So the guide gives the
apps another namespace, which is empty.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcloud.common.clock import system_clock
from localcloud.runtime.inspection import bus_messages
from localcloud.runtime.options import Options
from localcloud.runtime.parts.servicebus_part import EVENTS, QUEUES
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import Broker
from localcloud.servicebus.world.broker_values import QueueConfig
from shared.configuration.settings import App
from tests.support import fleet_files
from tests.support.deployed_rights import actions
from tests.support.local_cloud_start import Start
from tests.support.sample import DEEP

NAMES = [f"cluster-{number:02}" for number in range(20 if DEEP else 6)]
OPTIONS = Options(
    create_seconds=8,
    plan_schedule="*/5 * * * * *",
    resend_schedule="*/5 * * * * *",
    roles={app.value: sorted(actions(app)) for app in App},
    extra={"POLL_SECONDS": "0.5", "LEASE_SECONDS": "10"},
)


@pytest.fixture
def premium() -> Iterator[ServiceBusServer]:
    """Another namespace, with the queues of the templates."""
    queues = [QueueConfig(name, lock_seconds=10) for name in QUEUES]
    broker = Broker([*queues, QueueConfig(EVENTS, requires_session=False)], system_clock)
    with ServiceBusServer(broker) as server:
        yield server


@pytest.mark.long
def test_a_fleet_goes_on_with_another_namespace_while_its_jobs_wait_in_the_former_one(
    start: Start, premium: ServiceBusServer
) -> None:
    """The apps stop while clusters are created and one is deleted, and a push comes that nobody hears."""
    operator = start(OPTIONS)
    cloud, (gone, *kept) = operator.cloud, NAMES
    operator.wait_for_status(operator.push(fleet_files.fleet(gone)), "success")
    operator.push(fleet_files.fleet(*NAMES))
    operator.wait(lambda: operator.accepted()["create", kept[-1]] == 1, "clusters are being created")
    operator.push(fleet_files.fleet(*kept))
    operator.wait(lambda: operator.phases().get(gone) == "Deleting", "one is being deleted")
    cloud.kill_functions()
    left = {queue: sorted(bus_messages(cloud, queue)) for queue in ("jobs", "changes", "deletes")}
    assert any(left.values()), "jobs wait in the former namespace"
    tagged = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra="  tags: {bus: premium}\n")
        for name in kept
    }
    unheard = operator.push(fleet_files.fleet(*kept) | tagged)

    former, cloud.settings["ServiceBus"] = cloud.settings["ServiceBus"], premium.connection_string
    cloud.start_functions()

    operator.wait_for_status(unheard, "success", seconds=240)
    assert operator.phases() == dict.fromkeys(kept, "Ready")
    done = operator.accepted()
    assert {name: done["create", name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert {name: done["create-group", f"rg-{name}"] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert {name: done["delete", name] for name in NAMES} == {name: int(name == gone) for name in NAMES}
    assert {name: done["update", name] for name in kept} == dict.fromkeys(kept, 1)
    assert operator.api.get("dead-letters")["deadLetters"] == []
    cloud.settings["ServiceBus"] = former
    assert {queue: sorted(bus_messages(cloud, queue)) for queue in left} == left, (
        "nobody reads the former one"
    )
