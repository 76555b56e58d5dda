"""Manifests of clusters that exist outside Roadstead: what they have, and what is refused with its place."""

from __future__ import annotations

import pytest

from shared.language.desired import Desired
from shared.language.model.cluster.spec import EMPTY, FIELDS
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.resolver import resolve_clusters, resolve_shared
from tests.support.resolved_fleets import GOOD, HEAD, files_of, with_files

KUBECONFIG = "  provider: existing\n  existing:\n    kubeconfig: {vault: ops, secret: harbour}\n"
HARBOUR = HEAD.format("Cluster", "harbour") + f"spec:\n  environment: dev\n{KUBECONFIG}"


def harbour(text: str = HARBOUR, **more: str) -> DesiredFleet:
    return with_files(clusters__harbour__cluster=text, **more)


def problems(fleet: DesiredFleet, name: str = "harbour") -> list[str]:
    return [str(problem) for problem in fleet.invalid.get(name, ())]


def test_a_cluster_elsewhere_takes_from_the_defaults_what_runs_on_it_and_nothing_of_aks() -> None:
    fleet = harbour()
    assert problems(fleet) == []
    found = fleet.clusters["harbour"]
    stored = found.document()["spec"]
    assert stored.keys() <= FIELDS | set(EMPTY)
    assert stored["flux"]["repository"] == "https://github.com/example/fleet"
    assert not any(stored[field] for field in EMPTY)
    assert found.is_attached
    assert found.kubeconfig == ("ops", "harbour")


def test_its_stored_form_is_read_as_it_was_written() -> None:
    found = harbour().clusters["harbour"]
    again = Desired(found.document())
    assert (again.is_attached, again.kubeconfig, again.problem) == (True, ("ops", "harbour"), "")
    assert again.spec == found.spec
    assert again == found


def test_a_class_of_attached_clusters_names_the_secret_by_the_name_of_the_cluster() -> None:
    text = HEAD.format("ClusterClass", "edge")
    text += 'spec:\n  provider: existing\n  existing: {kubeconfig: {vault: ops, secret: "kube-{name}"}}\n'
    own = HEAD.format("Cluster", "harbour") + "spec: {class: edge}\n"
    fleet = harbour(own, classes__edge=text)
    assert problems(fleet) == []
    assert fleet.clusters["harbour"].kubeconfig == ("ops", "kube-harbour")


def test_each_field_of_aks_in_its_own_file_is_a_problem_with_its_place() -> None:
    text = f"{HARBOUR}  location: westeurope\n  tags: {{team: shop}}\n"
    message = "is a field of AKS clusters, and this one has provider: existing; remove it"
    assert problems(harbour(text)) == [
        f"clusters/harbour/cluster.yaml:10:3 spec.location: {message}",
        f"clusters/harbour/cluster.yaml:11:3 spec.tags: {message}",
    ]


def test_a_class_of_aks_clusters_is_a_problem_where_it_is_chosen() -> None:
    text = HARBOUR.replace("environment: dev", "class: web")
    (found,) = problems(harbour(text))
    assert found.startswith("clusters/harbour/cluster.yaml:6:3 spec.class: web is a class of AKS clusters:")


def test_a_kubeconfig_of_an_aks_cluster_is_refused() -> None:
    text = GOOD["clusters/two/cluster.yaml"] + "  existing: {kubeconfig: {vault: ops, secret: two}}\n"
    (found,) = problems(with_files(clusters__two__cluster=text), "two")
    assert "existing needs provider: existing" in found


def test_a_cluster_elsewhere_needs_a_kubeconfig() -> None:
    text = HEAD.format("Cluster", "harbour") + "spec: {provider: existing}\n"
    (found,) = problems(harbour(text))
    assert "spec.existing" in found


def test_the_extension_of_microsoft_is_refused_with_its_place() -> None:
    (found,) = problems(harbour(f"{HARBOUR}  flux: {{install: extension}}\n"))
    assert found.startswith("clusters/harbour/cluster.yaml:10:10 spec.flux.install: Microsoft's extension")


@pytest.mark.parametrize("asked", ["adopt: when-equal", 'rebuild: "2026-11-26T10:00:00Z"'])
def test_there_is_nothing_of_it_to_adopt_or_to_rebuild(asked: str) -> None:
    annotated = HARBOUR.replace(
        "  name: harbour\n", f"  name: harbour\n  annotations: {{roadstead.dev/{asked}}}\n"
    )
    (found,) = problems(harbour(annotated))
    assert "clusters/harbour/cluster.yaml:5:" in found
    assert "is for clusters in Azure" in found


def test_two_manifests_with_one_kubeconfig_are_both_refused() -> None:
    other = HARBOUR.replace("name: harbour", "name: quay").replace("secret: harbour", "secret: Harbour")
    fleet = harbour(clusters__quay__cluster=other)
    for name, another in (("harbour", "quay"), ("quay", "harbour")):
        (found,) = problems(fleet, name)
        assert (
            f"spec.existing.kubeconfig.secret: {another} names the secret harbour of the vault ops" in found
        )


def test_a_vault_that_the_app_may_not_read_is_refused_with_its_place() -> None:
    files = {path: text.encode() for path, text in GOOD.items()}
    files["clusters/harbour/cluster.yaml"] = HARBOUR.encode()
    stage = resolve_clusters(resolve_shared("example", files_of(files), files, known={}), {}, vaults={"team"})
    (path, message), *_ = stage.clashes["harbour"]
    assert path == ("existing", "kubeconfig", "vault")
    assert "the app may not read the vault ops: KEY_VAULTS, a setting of the app, has team" in message


def test_a_quota_of_azure_does_not_count_attached_clusters() -> None:
    quota = "  clusterQuotas:\n    - {clusters: 2}\n"
    fleet = harbour(fleet=GOOD["fleet.yaml"].replace("spec:\n", f"spec:\n{quota}", 1))
    assert not fleet.invalid, fleet.invalid
    assert {"one", "two", "harbour"} == fleet.clusters.keys()


def test_azure_manages_no_namespace_of_an_attached_cluster() -> None:
    system = GOOD["systems/shop.yaml"].replace("names: [one]", "names: [one, harbour]")
    fleet = harbour(systems__shop=f"{system}  managedNamespaces: {{}}\n")
    assert [str(problem) for problem in fleet.problems] == [
        "systems/shop.yaml:12:3 spec.managedNamespaces: harbour has provider: existing, where Azure manages "
        "no namespace; select AKS clusters only"
    ]
    assert fleet.clusters["one"].systems == ()
