"""``roadstead plan --against`` renders what a change of a chart or its values changes, where helm is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcloud.common.programs import TOOLS
from tests.support import fleet_files
from tests.support.git_folders import WITHOUT_APP, committed
from tests.support.platform_trees import kustomization, release
from tests.support.roadstead_command import OWN, roadstead, write

pytestmark = pytest.mark.lives

WITH_HELM = {"PATH": os.pathsep.join([str(TOOLS / "helm"), OWN["PATH"]])}
CHART = {
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/values.yaml": "replicas: 1\n",
    "charts/web/templates/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec: {replicas: {{ .Values.replicas }}}
{{- if .Values.extra }}
---
apiVersion: v1
kind: Secret
metadata: {name: extra, namespace: {{ .Release.Namespace }}}
stringData: {password: {{ .Values.extra }}}
{{- end }}
""",
}
LISTED = {"platform/kustomization.yaml": kustomization(resources=["web.yaml"])}


def of_web(chart: str = "./charts/web", **values: object) -> dict[str, str]:
    return {"platform/web.yaml": release("web", chart, f"  values: {json.dumps(values)}\n")}


def planned(folder: Path, before: Mapping[str, str], after: Mapping[str, str], *options: str) -> str:
    """Return what a plan says of charts."""
    texts = {path: text.encode() for path, text in {**CHART, **LISTED, **before}.items()}
    committed(folder, {**fleet_files.with_platform({}), **texts})
    write(folder, {path: text.encode() for path, text in after.items()})
    done = roadstead("plan", "--against", "HEAD", *options, cwd=folder, **WITHOUT_APP, **WITH_HELM)
    assert done.stderr == ""
    return done.stdout if options else done.stdout.partition("\nChart of ")[2]


@pytest.mark.parametrize(
    "after",
    [
        of_web(replicas=3),
        {"charts/web/values.yaml": "replicas: 3\n"},
    ],
)
def test_values_and_files_of_a_chart_are_shown_as_what_they_render(
    tmp_path: Path, after: Mapping[str, str]
) -> None:
    text = planned(tmp_path, of_web(), after)
    assert text.startswith("HelmRelease flux-system/web on 3 clusters: 1 object\n")
    assert "  ~ Deployment flux-system/web spec.replicas 1 -> 3\n" in text


def test_an_object_that_comes_has_no_value_of_a_secret(tmp_path: Path) -> None:
    found = json.loads(planned(tmp_path, of_web(), of_web(extra="Correct-horse-9912"), "-o", "json"))
    (chart,) = found["platform"]["charts"]
    assert [(change["sign"], change["object"]) for change in chart["changes"]] == [
        ("+", "Secret flux-system/extra")
    ]
    assert "Correct-horse" not in json.dumps(chart)


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"charts/web/templates/web.yaml": "{{ fail `no such value` }}"}, "no such value"),
        (of_web("./charts/nowhere"), "the source of its chart is not in this repository"),
    ],
)
def test_what_is_not_rendered_is_a_note(tmp_path: Path, after: Mapping[str, str], reason: str) -> None:
    text = planned(tmp_path, of_web(), after)
    assert text.startswith("HelmRelease flux-system/web on 3 clusters: not rendered: ")
    assert reason in text
