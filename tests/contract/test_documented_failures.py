"""Each body that a page of Microsoft shows leads, through every Azure, to the entry that documents it."""

from __future__ import annotations

import pytest

from localcloud.azure.world.failures.documented import documented, failures
from shared.app.access.azure_state import provisioning_error
from shared.cluster.failures.azure_failures import entry_for, operation_failure
from shared.cluster.failures.catalogue import AZURE
from shared.cluster.failures.errors import ReconcileError
from shared.ports.azure import DeleteCluster, PutCluster
from tests.support.azure_ports import CLUSTER, Azure, body
from tests.support.documented_failures import ENTRIES
from tests.support.sample import sample

ANY_TIME = 3600


def test_every_failure_of_the_local_azure_is_expected_here() -> None:
    unexpected = {failure.name for failure in documented().values()} ^ set(ENTRIES)
    assert unexpected == set(), "tests/support/documented_failures.py: ENTRIES has the entry of each"
    assert {failure.when for failure in documented().values()} == {"request", "operation", "delete"}
    assert all(failure.page for failure in documented().values())


def test_the_local_azure_fails_with_each_code_of_the_tables() -> None:
    known = {failure.body["code"].lower() for failure in failures().values()} | {*failures()}
    lacking = [
        f"{code} of {entry.key}"
        for entry in AZURE.entries
        if not entry.family
        for code in entry.codes
        if code and code.lower() not in known
    ]
    names = "documented.json has the body that a source shows, listed.json a code whose name alone is public"
    assert lacking == [], f"localcloud/azure/world/failures/: {names}: {', '.join(lacking)}"


def test_each_body_has_its_entry() -> None:
    for name, entry in ENTRIES.items():
        found = entry_for(documented()[name.lower()].body)
        assert (name, found and found.key) == (name, entry)


@pytest.mark.lives
@pytest.mark.parametrize("name", sample("documented failures", ENTRIES, 40))
def test_a_body_keeps_its_entry_through_azure(name: str, azure: Azure) -> None:
    failure = documented()[name.lower()]
    azure.with_cluster()
    azure.world.interventions.fail_next(CLUSTER.name, name)
    etag, text = azure.seen()["eTag"], failure.body["message"]
    write = PutCluster(CLUSTER, body(), etag=etag)
    if failure.when == "request":
        with pytest.raises(ReconcileError) as refused:
            azure.call(write)
        error = refused.value
        azure.call(write)
        azure.clock.advance(ANY_TIME)
        assert azure.state() == "Succeeded"
    else:
        azure.call(DeleteCluster(CLUSTER, etag=etag) if failure.when == "delete" else write)
        azure.clock.advance(ANY_TIME)
        assert azure.state() == "Failed"
        found = provisioning_error(azure.seen()["properties"])
        error = operation_failure("Failed", found, str(found["message"]))
    assert (error.entry, error.code, str(error)) == (ENTRIES[name], failure.body["code"], text)
