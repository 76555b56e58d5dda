"""Service hooks that Azure DevOps has disabled: the adapter says so, as doctor shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.azure_devops.devops_server import DevOpsServer
from shared.adapters.azure_devops import AzureDevOpsHost
from shared.cluster.failures.errors import Dependency
from tests.support.azure_ports import StaticCredential


@pytest.mark.parametrize("status", ["onProbation", "disabledBySystem", "disabledByUser"])
def test_a_subscription_that_is_not_enabled_is_said_with_its_event(tmp_path: Path, status: str) -> None:
    with DevOpsServer(tmp_path, accepts=lambda _: True) as server:
        server.create_repository("acme/fleet")
        server.create_repository("acme/other")
        host = AzureDevOpsHost(server.clone_url("acme/fleet"), StaticCredential())
        assert host.deliveries() == ()
        server.hooks.url = "https://app.example.com/api/webhook"
        assert host.deliveries() == ()
        server.hooks.status = status
        with pytest.raises(Dependency, match=f"git.push is {status}"):
            host.deliveries()
        server.hooks.url = "https://another.example.com/hook"
        assert host.deliveries() == ()
        host.close()
