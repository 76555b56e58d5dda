"""Files of a commit are read in few calls, verified by their ids, and cached."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.repository import read_blobs
from shared.cluster.failures.errors import Unavailable
from shared.language.resolve.repository_layout import blob_id
from tests.support.counted_calls import Calls
from tests.support.replaced_ports import Around


def committed(cloud: MemoryCloud, files: dict[str, bytes]) -> tuple[str, dict[str, str]]:
    commit = cloud.repository.push(files)
    return commit, {path: blob_id(data) for path, data in files.items()}


MANY = {f"{number}.yaml": b"number: %d\n" % number for number in range(50)}


def test_a_few_files_are_a_call_each_and_many_are_one_archive() -> None:
    for count, blobs, archives in ((20, 20, 0), (21, 0, 1), (50, 0, 1)):
        cloud, calls = MemoryCloud(), Calls()
        calls.watch(cloud)
        commit, ids = committed(cloud, dict(list(MANY.items())[:count]))
        contents = read_blobs(commit, ids, cloud.ports)
        assert contents == {blob_id(data): data for data in list(MANY.values())[:count]}
        assert (len(calls.blobs), calls.archives) == (blobs, archives)


def test_a_cached_blob_is_not_read_again() -> None:
    cloud, calls = MemoryCloud(), Calls()
    calls.watch(cloud)
    files = MANY | {"large": b"x" * 60_001}
    commit, ids = committed(cloud, files)
    read_blobs(commit, ids, cloud.ports)
    assert calls.archives == 1
    assert len(read_blobs(commit, ids, cloud.ports)) == 51
    assert (calls.blobs, calls.archives) == ([ids["large"]], 1)


def test_a_file_that_the_archive_has_in_another_form_is_read_by_itself() -> None:
    class Altered(Calls):
        def change(self, path: str, data: bytes) -> bytes:
            return {"1.yaml": data + b"#", "2.yaml": data.replace(b"\n", b"\r\n")}.get(path, data)

    cloud, calls = MemoryCloud(), Altered()
    calls.watch(cloud)
    commit, ids = committed(cloud, MANY)
    assert read_blobs(commit, ids, cloud.ports) == {blob_id(data): data for data in MANY.values()}
    assert (calls.blobs, calls.archives) == ([ids["1.yaml"]], 1)


def test_a_cached_blob_with_another_content_is_ignored() -> None:
    cloud = MemoryCloud()
    commit, ids = committed(cloud, {"a.yaml": b"1"})
    cloud.state.save_blobs({ids["a.yaml"]: b"2"})
    assert read_blobs(commit, ids, cloud.ports) == {ids["a.yaml"]: b"1"}
    assert cloud.state.blobs([ids["a.yaml"]]) == {ids["a.yaml"]: b"1"}


def test_blobs_read_before_a_failure_stay_cached() -> None:
    cloud, calls = MemoryCloud(), Calls()
    calls.watch(cloud)
    commit, ids = committed(cloud, {f"{number}": b"%d" % number for number in range(150)})
    port = cloud.ports.git_host

    def fails(sha: str) -> bytes:
        if len(calls.blobs) == 120:
            raise Unavailable("GitHub did not answer")
        return port.blob(sha)

    broken = Around(port, blob=fails, archive=lambda _commit, _paths: {})
    with pytest.raises(Unavailable):
        read_blobs(commit, ids, replace(cloud.ports, git_host=broken))
    assert len(cloud.state.blobs(ids.values())) == 100
