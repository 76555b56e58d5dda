"""The example of Azure Service Operator: planned, hydrated as far as custom resources go, and confined."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.resource_ids import ClusterId, ObjectRef
from tests.support import fleet_files
from tests.support.identity_access import credentials, with_identity
from tests.support.pipeline_runs import phases, push
from tests.support.resolved_fleets import resolved
from tests.support.service_operator import ORDERS, POSTGRES, SERVER, operator_files
from tests.support.team_systems import objects

pytestmark = pytest.mark.lives

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
BALTIC = ClusterId(SUBSCRIPTION, "rg-baltic-aks", "baltic-aks")


def example(*, installed: bool = True) -> dict[str, bytes]:
    """Return the example over the example fleet, with one cluster."""
    files = fleet_files.example() | operator_files(installed=installed)
    others = (
        "clusters/atlantic-aks/",
        "clusters/pacific-aks/",
        "clusters/sargasso-aks/",
        "systems/shop.yaml",
    )
    return {path: text for path, text in files.items() if not path.startswith(others)}


def hydrated(files: dict[str, bytes]) -> MemoryCloud:
    """Return a cloud whose cluster is Ready with the operator and the team's system."""
    cloud = with_identity(identity=ORDERS)
    push(cloud, files)
    cloud.run(seconds=3600)
    return cloud


def test_the_example_over_the_example_fleet_has_no_problem() -> None:
    found = resolved(example())
    assert found.problems == ()
    assert list(found.clusters) == ["baltic-aks"]


def test_a_team_has_its_database_from_git_and_the_operator_its_identity_and_the_facts() -> None:
    cloud = hydrated(example())
    assert phases(cloud) == {"baltic-aks": Phase.READY}
    api = cloud.kubernetes.connect(BALTIC)
    server = api.get(SERVER)
    assert server is not None, "Flux applied the team's folder, in the team's namespace"
    assert server["spec"]["authConfig"]["passwordAuth"] == "Disabled"
    for kind, name in (
        ("FlexibleServersDatabase", "orders"),
        ("FlexibleServersAdministrator", "orders-administrator"),
    ):
        assert api.get(ObjectRef(POSTGRES, kind, name, "orders")) is not None
    assert api.get(ObjectRef("v1", "Secret", "aso-credential", "orders")) is not None
    shown = api.get(ObjectRef("v1", "ConfigMap", "cluster", "azureserviceoperator-system"))
    live = cloud.azure.peek(BALTIC)
    assert shown is not None
    assert live is not None
    issuer = live["properties"]["oidcIssuerProfile"]["issuerURL"]
    assert (shown["data"]["cluster"], shown["data"]["issuer"]) == ("baltic-aks", issuer)
    (credential,) = credentials(cloud, ORDERS).values()
    subject = "system:serviceaccount:azureserviceoperator-system:azureserviceoperator-default"
    assert (credential["issuer"], credential["subject"]) == (issuer, subject)
    assert "Namespace orders" in objects(cloud, "baltic-aks", "orders")


def test_without_the_rights_of_the_example_a_team_creates_no_azure_resource() -> None:
    files = example()
    del files["operators/azure-service-operator/rights.yaml"]
    cloud = hydrated(files)
    assert phases(cloud)["baltic-aks"] is not Phase.READY
    assert cloud.kubernetes.connect(BALTIC).get(SERVER) is None
    explained = why_view("baltic-aks", cloud.ports)
    assert explained is not None
    assert "orders" in explained["doing"]
    assert "forbidden" in explained["doing"]


def test_without_the_operator_the_system_says_which_kind_is_missing() -> None:
    cloud = hydrated(example(installed=False))
    explained = why_view("baltic-aks", cloud.ports)
    assert explained is not None
    assert "no matches for kind" in explained["doing"]
