"""What Microsoft's pages show, on the wire: what happens next, and what ``why`` says."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.failures.documented import documented
from localcloud.runtime import azure_command
from localcloud.runtime.options import Options
from shared.cluster.failures.catalogue import entry_of
from shared.cluster.failures.errors import Retryable
from tests.support import fleet_files
from tests.support.documented_failures import ENTRIES
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.sample import sample

OF_WRITES = [name for name in ENTRIES if documented()[name.lower()].when != "delete"]
MOST = 6
EACH = 40
"""So many failures are those of one fleet."""
CHOSEN = sample("pages", OF_WRITES, MOST)


def fail(operator: Operator, cluster: str, code: str) -> None:
    """Let what a page shows happen to the next write."""
    assert azure_command.main([cluster, "fail", code, "--state", str(operator.cloud.state)]) == 0


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, len(CHOSEN), EACH))
def test_what_happens_next_and_why_come_from_the_catalogue(start: Start, first: int) -> None:
    operator = start(Options(create_seconds=1))
    failing = {f"c{number}": name for number, name in enumerate(CHOSEN[first : first + EACH])}
    for cluster, name in failing.items():
        fail(operator, cluster, name)
    operator.push(fleet_files.fleet(*failing))
    seen: dict[str, dict[str, Any]] = {}

    def all_seen() -> bool:
        for cluster in operator.phases().keys() - seen.keys():
            why = operator.api.why(cluster)
            if why["lastError"]:
                seen[cluster] = dict(why)
        return len(seen) == len(failing)

    operator.wait(all_seen, "each failure was seen", seconds=120)
    for cluster, name in failing.items():
        why, entry = seen[cluster], entry_of(ENTRIES[name])
        assert entry is not None
        error = why["lastError"]
        assert (error["entry"], error["meaning"], error["link"]) == (entry.key, entry.meaning, entry.link), (
            name
        )
        assert documented()[name.lower()].body["message"][:100] in error["message"]
        abandoned = error["class"] == "Blocked" and documented()[name.lower()].when == "operation"
        again = issubclass(entry.kind, Retryable) and not abandoned
        assert bool(why["nextAt"]) == again, name
        assert "Commit a manifest that the service accepts" not in why["suggestedAction"]
