"""The state: the fleet, its timers and sweeps, buckets and manifests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import Stale
from shared.cluster.failures.fleet_problem import FailedPart, FleetProblem
from shared.ports import FleetRecord, State
from shared.ports.state import Listing, Orphan, SweepRecord, TimerRun
from tests.support.cluster_records import NOW, later


def test_the_fleet_record_is_written_by_compare_and_swap(state: State) -> None:
    state.save_fleet(FleetRecord("a" * 40, NOW))
    read = state.fleet()
    assert read == FleetRecord("a" * 40, NOW)
    problem = FleetProblem("no answer", FailedPart.READ, "Unavailable", "c" * 40)
    state.save_fleet(replace(read, commit="b" * 40, problem=problem))
    with pytest.raises(Stale):
        state.save_fleet(read)
    with pytest.raises(Stale):
        state.save_fleet(FleetRecord("d" * 40, NOW))
    assert state.fleet() == FleetRecord("b" * 40, NOW, problem)


def test_the_settings_that_were_seen_last_are_read_again(state: State) -> None:
    assert state.settings_seen() == {}
    state.save_settings_seen({"POLL_SECONDS": "20"})
    state.save_settings_seen({"POLL_SECONDS": "30"})
    assert state.settings_seen() == {"POLL_SECONDS": "30"}
    assert list(state.acts(5)) == []


def test_a_token_bucket_is_written_by_compare_and_swap(state: State) -> None:
    assert state.bucket("s|arm-read") is None
    state.save_bucket("s|arm-read", Bucket(NOW))
    with pytest.raises(Stale):
        state.save_bucket("s|arm-read", Bucket(NOW))
    read = state.bucket("s|arm-read")
    assert read == Bucket(NOW)
    assert read is not None
    moment = later(1.000001)
    state.save_bucket("s|arm-read", replace(read, full_at=moment))
    with pytest.raises(Stale):
        state.save_bucket("s|arm-read", replace(read, full_at=later(2)))
    assert state.bucket("s|arm-read") == Bucket(moment)


def test_the_last_run_of_a_timer_is_kept_and_an_expected_one_until_it_has_run(state: State) -> None:
    assert state.timer_runs() == {}
    state.save_timer_run("sweep", NOW)
    state.expect_timers(["sweep", "resend_overdue"], later(5))
    expected = TimerRun(later(5), ran=False)
    assert state.timer_runs() == {"sweep": TimerRun(NOW), "resend_overdue": expected}
    state.expect_timers(["sweep", "resend_overdue"], later(9))
    assert state.timer_runs()["resend_overdue"] == expected
    state.save_timer_run("resend_overdue", later(7))
    state.save_timer_run("sweep", later(8))
    assert state.timer_runs() == {"sweep": TimerRun(later(8)), "resend_overdue": TimerRun(later(7))}


def test_blobs_are_saved_byte_for_byte(state: State) -> None:
    blobs = {"a" * 40: b"", "b" * 40: bytes(range(256)), "c" * 40: b"x" * 60_000}
    assert dict(state.blobs(blobs)) == {}
    for _ in range(2):
        state.save_blobs(blobs)
    assert dict(state.blobs([*blobs, "d" * 40])) == blobs
    assert dict(state.blobs(["b" * 40])) == {"b" * 40: bytes(range(256))}
    assert dict(state.blobs([])) == {}


def test_many_and_large_blobs_are_saved_at_once(state: State) -> None:
    blobs = {f"{number:040x}": b"%d" % number for number in range(250)}
    blobs |= {f"{number:040x}": b"x" * 60_000 for number in range(1000, 1080)}
    state.save_blobs(blobs)
    assert dict(state.blobs(blobs)) == blobs


def test_the_fingerprints_of_a_large_fleet_are_read_back_as_they_were(state: State) -> None:
    assert dict(state.fingerprints()) == {}
    marks = {f"cluster-{number:05d}": f"{number * 7919:016x}" for number in range(10_000)}
    state.save_fingerprints(marks)
    assert dict(state.fingerprints()) == marks
    state.save_fingerprints({"one": "0"})
    assert dict(state.fingerprints()) == {"one": "0"}
    assert state.fleet() == FleetRecord()


def test_the_record_of_the_sweeps_is_written_only_over_the_version_that_was_read(state: State) -> None:
    assert state.sweep() == SweepRecord()
    orphan = Orphan("/subscriptions/s/x", "one", "0a0b@main", NOW)
    listing = Listing("s", NOW, "no answer", (orphan,), "", ("one",), NOW)
    first = SweepRecord(NOW, later(60), (listing,))
    state.save_sweep(first)
    saved = state.sweep()
    assert saved == first
    state.save_sweep(replace(saved, listings=()))
    with pytest.raises(Stale):
        state.save_sweep(saved)
    assert state.sweep().listings == ()
