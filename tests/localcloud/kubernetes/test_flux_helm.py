"""The small Flux installs, upgrades and uninstalls releases of charts that the real helm renders."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from localcloud.kubernetes.world.object_store import At
from tests.support.small_flux import KINDS, FluxCluster

pytestmark = pytest.mark.lives

HELM_RELEASE = ("helm.toolkit.fluxcd.io/v2", "HelmRelease")
HELM_CHART = ("source.toolkit.fluxcd.io/v1", "HelmChart")
COMPONENTS = Path(__file__).parents[3] / "examples/platform/flux/gotk-components.yaml"
CHART = b"apiVersion: v2\nname: web\nversion: 1.0.0\n"
MAP = b"""
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {colour: {{ required "a colour is needed" .Values.colour }}, first: "{{ .Release.IsInstall }}"}
"""
EXTRA = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
SPEC = {
    "interval": "10m",
    "targetNamespace": "team",
    "releaseName": "web",
    "chart": {
        "spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "flux-system"}}
    },
    "values": {"colour": "blue"},
}


@pytest.fixture
def cluster() -> FluxCluster:
    """A cluster with a helm-controller, a source with a chart, and the namespace of the release."""
    made = FluxCluster(
        {
            "charts/web/Chart.yaml": CHART,
            "charts/web/templates/map.yaml": MAP,
            "charts/web/templates/extra.yaml": EXTRA,
        }
    )
    for manifest in yaml.safe_load_all(COMPONENTS.read_text()):
        made.apply(manifest)
    made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    made.let_time_pass()
    made.source()
    return made


def release(made: FluxCluster, **spec: object) -> None:
    metadata = {"name": "web", "namespace": "flux-system"}
    api_version, kind = HELM_RELEASE
    made.apply({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {**SPEC, **spec}})
    made.let_time_pass()


def settings(made: FluxCluster) -> dict[str, str]:
    found: dict[str, str] = made.world.get(At(KINDS["ConfigMap"], "web-settings", "team"))["data"]
    return found


def test_a_release_is_installed_and_ready(cluster: FluxCluster) -> None:
    release(cluster)
    message = "Helm install succeeded for release team/web.v1 with chart web@1.0.0"
    assert cluster.ready(HELM_RELEASE, "web") == ("True", "InstallSucceeded", message)
    packaged = "packaged 'web' chart with version '1.0.0'"
    assert cluster.ready(HELM_CHART, "flux-system-web") == ("True", "ChartPackageSucceeded", packaged)
    assert settings(cluster) == {"colour": "blue", "first": "true"}
    assert cluster.world.find(At(KINDS["Secret"], "sh.helm.release.v1.web.v1", "team"))


def test_new_values_upgrade_it_and_an_idle_round_writes_nothing(cluster: FluxCluster) -> None:
    release(cluster)
    release(cluster, values={"colour": "red"})
    message = "Helm upgrade succeeded for release team/web.v2 with chart web@1.0.0"
    assert cluster.ready(HELM_RELEASE, "web") == ("True", "UpgradeSucceeded", message)
    assert settings(cluster) == {"colour": "red", "first": "false"}
    before = cluster.world.version
    cluster.let_time_pass(1200)
    assert cluster.world.version == before


def test_only_a_new_version_of_the_chart_is_a_new_chart(cluster: FluxCluster) -> None:
    release(cluster)
    files = {**cluster.files, "charts/web/templates/extra.yaml": b""}
    cluster.commit(files)
    cluster.let_time_pass(120)
    assert "extra" in cluster.maps()
    cluster.commit({**files, "charts/web/Chart.yaml": CHART.replace(b"1.0.0", b"1.1.0")})
    cluster.let_time_pass(120)
    assert cluster.ready(HELM_RELEASE, "web")[2].endswith("web.v2 with chart web@1.1.0")
    assert cluster.maps() == ["web-settings"]


def test_a_chart_that_cannot_be_rendered_is_named_with_the_words_of_helm(cluster: FluxCluster) -> None:
    release(cluster, values={})
    status, reason, message = cluster.ready(HELM_RELEASE, "web")
    assert (status, reason) == ("False", "InstallFailed")
    assert message.startswith("Helm install failed for release team/web with chart web@1.0.0: ")
    assert "a colour is needed" in message
    release(cluster)
    assert cluster.ready(HELM_RELEASE, "web")[0] == "True"


def test_values_come_from_a_secret_and_are_merged_under_those_of_the_release(cluster: FluxCluster) -> None:
    release(cluster, values={}, valuesFrom=[{"kind": "Secret", "name": "values"}])
    assert cluster.ready(HELM_RELEASE, "web")[1] == "ValuesError"
    data = {"values.yaml": base64.b64encode(b"colour: green").decode()}
    metadata = {"name": "values", "namespace": "flux-system"}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    cluster.let_time_pass(10)
    assert settings(cluster)["colour"] == "green"


def test_a_source_that_does_not_exist_is_named(cluster: FluxCluster) -> None:
    chart = {"spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "no-such"}}}
    release(cluster, chart=chart)
    cluster.let_time_pass(2800)
    status, reason, message = cluster.ready(HELM_RELEASE, "web")
    assert (status, reason) == ("False", "SourceNotReady")
    problem = "no artifact available for GitRepository source 'no-such'"
    assert message == f"HelmChart 'flux-system/flux-system-web' is not ready: {problem}"


def test_a_deleted_release_is_uninstalled(cluster: FluxCluster) -> None:
    release(cluster)
    cluster.world.delete(cluster.at(*HELM_RELEASE, "web"))
    cluster.let_time_pass()
    assert cluster.maps() == []
    assert cluster.world.find(cluster.at(*HELM_CHART, "flux-system-web")) is None
    assert cluster.world.find(At(KINDS["Secret"], "sh.helm.release.v1.web.v1", "team")) is None


def test_an_account_without_rights_installs_nothing(cluster: FluxCluster) -> None:
    release(cluster, serviceAccountName="nobody")
    status, reason, message = cluster.ready(HELM_RELEASE, "web")
    assert (status, reason) == ("False", "InstallFailed")
    assert "forbidden" in message
    assert cluster.maps() == []
