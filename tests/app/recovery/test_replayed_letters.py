"""Dead letters that an operator replays: their messages come again, and are decided then."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.fleet import dead_letters_view, replay_letters
from shared.app.recovery.dead_letters import MAX_BYTES, ReceivedDeadLetter, handle_dead_letter
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.ports import Message
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, push, with_two_removed
from tests.support.replaced_ports import around, fails_once

pytestmark = pytest.mark.lives


def lost(cloud: MemoryCloud, body: str, queue: str = "plans", name: str = "7:m") -> None:
    """Let a queue give a message up."""
    letter = ReceivedDeadLetter(queue, name, cloud.clock(), body.encode(), body, "MaxDeliveryCountExceeded")
    handle_dead_letter(letter, cloud.ports)


def lost_approval(cloud: MemoryCloud, commit: str) -> None:
    approval = Approval(commit=commit, clusters=("one", "two"), by="ada", at=cloud.clock())
    lost(cloud, PlanRequest(again=True, reason="approved", approval=approval, attempt=4).model_dump_json())


def test_an_approval_that_a_queue_gave_up_is_carried_out_after_a_replay() -> None:
    cloud = with_two_removed()
    lost_approval(cloud, cloud.state.fleet().commit)
    cloud.run()
    assert [letter["replayable"] for letter in dead_letters_view(cloud.ports)["deadLetters"]] == [True]
    answer = replay_letters([("plans", "7:m")], "ann", cloud.ports)
    assert (answer.status, answer.body) == (202, {"replayed": 1, "by": "ann"})
    assert cloud.state.count_dead_letters() == 0
    cloud.run()
    assert [record.name for record in cloud.state.clusters()] == ["three"]


def test_an_approval_of_an_older_commit_does_nothing_when_it_is_replayed() -> None:
    cloud = with_two_removed()
    lost_approval(cloud, cloud.state.fleet().commit)
    push(cloud, fleet_files.fleet("one", "two", "three", "four"))
    cloud.run()
    assert replay_letters([("plans", "7:m")], "ann", cloud.ports).status == 202
    cloud.run()
    assert len(cloud.state.clusters()) == 4


@pytest.mark.parametrize(
    ("queue", "body"),
    [
        ("plans", "not a message"),
        ("jobs", '{"schema_version": 99}'),
        ("events", "{}"),
        ("previews", '{"kind": "preview", "pull": 3, "x": "' + "9" * MAX_BYTES + '"}'),
    ],
)
def test_what_is_no_message_or_not_stored_whole_is_refused_and_stays(queue: str, body: str) -> None:
    cloud = MemoryCloud()
    lost_approval(cloud, "c" * 40)
    lost(cloud, body, queue, "8:m")
    sent = list[Message]()
    around(cloud, "plans", send=sent.extend)
    answer = replay_letters([("plans", "7:m"), (queue, "8:m")], "ann", cloud.ports)
    assert (answer.status, "8:m cannot be replayed" in answer.body["error"]) == (409, True)
    assert cloud.state.count_dead_letters() == 2
    assert not sent


def test_a_letter_that_is_gone_is_refused() -> None:
    assert replay_letters([("plans", "7:m")], "ann", MemoryCloud().ports).status == 404


def test_a_letter_that_cannot_be_removed_is_replayed_twice_at_most_and_is_harmless() -> None:
    cloud = with_two_removed()
    lost_approval(cloud, cloud.state.fleet().commit)
    fails_once(cloud, "state", "delete_dead_letter")
    with pytest.raises(Unavailable):
        replay_letters([("plans", "7:m")], "ann", cloud.ports)
    assert replay_letters([("plans", "7:m")], "ann", cloud.ports).status == 202
    cloud.run()
    assert [record.name for record in cloud.state.clusters()] == ["three"]
    assert accepted(cloud)["delete", "one"] == 1
