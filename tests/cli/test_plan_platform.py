"""``roadstead plan --against`` shows what a change of the platform does to the clusters that get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.support import fleet_files
from tests.support.git_folders import WITHOUT_APP, committed
from tests.support.platform_trees import applied, config_map, kustomization, namespace
from tests.support.roadstead_command import roadstead, write

Texts = Mapping[str, str]
CLUSTERS = "Flux on 3 clusters of development and production"
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: samples, namespace: monitoring}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""
LAYER = {
    "layers/monitoring/namespace.yaml": namespace("monitoring"),
    "layers/monitoring/claim.yaml": CLAIM,
}
ROOT = {"kustomization.yaml": kustomization(resources=["monitoring.yaml"])}


def store(size: str, *, force: bool) -> str:
    marks = "{kustomize.toolkit.fluxcd.io/force: enabled}" if force else "{}"
    return f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: store, namespace: platform, annotations: {marks}}}
spec:
  serviceName: store
  selector: {{matchLabels: {{app: store}}}}
  persistentVolumeClaimRetentionPolicy: {{whenDeleted: Delete}}
  template:
    metadata: {{labels: {{app: store}}}}
    spec: {{containers: [{{name: store, image: "registry.example/store:1"}}]}}
  volumeClaimTemplates:
    - metadata: {{name: data}}
      spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}
"""


def monitoring(name: str = "monitoring", more: str = "") -> dict[str, str]:
    return {**ROOT, **LAYER, "monitoring.yaml": applied(name, "./platform/layers/monitoring", more=more)}


def planned(folder: Path, before: Texts, after: Texts, *arguments: str) -> tuple[int, str]:
    """Return the exit code, and what follows the line about clusters, of a change of the platform."""
    committed(folder, fleet_files.with_platform(before))
    for name in before.keys() - after.keys():
        (folder / "platform" / name).unlink()
    write(folder, {f"platform/{name}": text.encode() for name, text in after.items()})
    done = roadstead("plan", "--against", "HEAD", *arguments, cwd=folder, **WITHOUT_APP)
    assert done.stderr == ""
    first, _, rest = done.stdout.partition("\n")
    assert arguments or first.endswith(": 3 unchanged")
    return done.returncode, rest if not arguments else done.stdout


def test_what_may_be_wrong_is_told_where_it_is_new(tmp_path: Path) -> None:
    known = {"kustomization.yaml": kustomization(resources=["a.yaml"]), "a.yaml": namespace("platform")}
    early = applied("m", "./platform/layers/m").replace("  wait: true\n", "")
    new = {
        "kustomization.yaml": kustomization(resources=["a.yaml", "m.yaml"]),
        "m.yaml": early,
        "layers/m/c.yaml": config_map("c"),
    }
    code, text = planned(tmp_path / "one", known, {**known, **new})
    assert code == 0
    assert "\nFlux: may be wrong\n  platform/m.yaml:" in text
    assert "Kustomization flux-system/m: Ready as soon as applied" in text
    _, text = planned(
        tmp_path / "two",
        {**known, **new},
        {**known, **new, "a.yaml": namespace("platform") + "---\n" + namespace("b")},
    )
    assert "Ready as soon as applied" not in text
    _, text = planned(
        tmp_path / "three", {**known, **new}, {**known, **new, "m.yaml": f"# moves all lines\n{early}"}
    )
    assert "Ready as soon as applied" not in text


def test_a_renamed_kustomization_takes_along_what_it_owns_and_the_hint_is_a_way_without_loss(
    tmp_path: Path,
) -> None:
    orphan = "  deletionPolicy: Orphan\n"
    code, text = planned(tmp_path / "one", monitoring(), monitoring("observability"))
    assert code == 0
    assert f"{CLUSTERS} (2 paths): needs approval" in text
    assert (
        "- Kustomization flux-system/monitoring\n"
        "      needs approval: Kustomization flux-system/monitoring is deleted, with what it owns: "
        "Namespace monitoring, PersistentVolumeClaim monitoring/samples\n"
        "      hint: first commit spec.deletionPolicy: Orphan"
    ) in text
    assert "+ Kustomization flux-system/observability" in text
    _, first = planned(tmp_path / "two", monitoring(), monitoring(more=orphan))
    _, second = planned(tmp_path / "three", monitoring(more=orphan), monitoring("observability"))
    assert "~ Kustomization flux-system/monitoring spec.deletionPolicy nothing -> Orphan" in first
    assert "what it owns stays: deletionPolicy is Orphan" in second
    assert "needs approval" not in first + second


def test_a_field_that_never_changes_needs_an_approval_with_force_and_is_refused_without(
    tmp_path: Path,
) -> None:
    for force, expected in ((True, 0), (False, 1)):
        before, after = ({"store.yaml": store(size, force=force)} for size in ("10Gi", "20Gi"))
        code, text = planned(tmp_path / str(force), before, after)
        assert code == expected
        assert f"{CLUSTERS} (1 path): {'needs approval' if force else 'refused'}" in text
        assert "spec.volumeClaimTemplates[data].spec.resources.requests.storage 10Gi -> 20Gi" in text
        assert ("is deleted and created again" in text) is force
        assert ("with its claims" in text) is force


def test_what_is_below_a_suspended_kustomization_is_a_note(tmp_path: Path) -> None:
    asleep = monitoring(more="  suspend: true\n")
    code, text = planned(tmp_path, asleep, {**asleep, "layers/monitoring/c.yaml": config_map("c")})
    assert code == 0
    assert (
        "+ ConfigMap platform/c: reaches no cluster: "
        "Kustomization flux-system/monitoring is suspended in platform/monitoring.yaml"
    ) in text


def test_a_refactoring_says_that_no_object_differs(tmp_path: Path) -> None:
    before = {
        "kustomization.yaml": kustomization(resources=["all.yaml"]),
        "all.yaml": f"{namespace('a')}---\n{config_map('c', k='v')}",
    }
    after = {
        "kustomization.yaml": kustomization(resources=["inner"]),
        "inner/kustomization.yaml": kustomization(resources=["c.yaml", "n.yaml"]),
        "inner/c.yaml": "kind: ConfigMap\ndata: {k: 'v'}\napiVersion: v1\n"
        "metadata: {namespace: platform, name: c}\n",
        "inner/n.yaml": namespace("a"),
    }
    code, text = planned(tmp_path, before, after, "--exit-code", "-o", "table")
    assert (code, text.splitlines()[1].partition(" (")[0]) == (0, "Flux: no object differs")


def test_a_path_that_is_gone_is_refused_and_no_removal(tmp_path: Path) -> None:
    moved = {name.replace("monitoring/", "elsewhere/"): text for name, text in monitoring().items()}
    code, text = planned(tmp_path, monitoring(), moved)
    assert code == 1
    assert f"{CLUSTERS} (1 path): refused" in text
    assert "- " not in text
    assert "PersistentVolumeClaim" not in text


def test_no_value_of_a_secret_is_printed(tmp_path: Path) -> None:
    def secret(value: str) -> str:
        head = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: a}\n"
        return f"{head}data: {{password: {value}}}\nstringData: {{other: x-{value}-y}}\n"

    texts = [{"s.yaml": secret(value)} for value in ("Zmlyc3QtdmFsdWU=", "c2Vjb25kLXZhbHVl")]
    code, text = planned(tmp_path, texts[0], texts[1], "-o", "json")
    view = json.loads(text)
    (section,) = view["platform"]["changes"]
    assert [field["path"] for field in section["changes"][0]["fields"]] == [
        "data.password",
        "stringData.other",
    ]
    assert "Zmlyc" not in text
    assert "c2Vjb" not in text
    assert code == (1 if view["problems"] else 0)


def test_one_cluster_alone_and_the_budget_of_the_fleet(tmp_path: Path) -> None:
    many = {f"c{number}.yaml": config_map(f"c{number}") for number in range(22)}
    code, text = planned(tmp_path, many, {"c0.yaml": config_map("c0")}, "--cluster", "sargasso-aks")
    assert code == 0
    assert "Flux on sargasso-aks (1 path): needs approval" in text
    assert "21 objects of a cluster are deleted, guards.deleteBudget.objects in fleet.yaml allows 20" in text
