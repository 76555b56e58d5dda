"""What a change of a chart, its version or its values changes of the objects that it renders, where helm is.

A HelmRelease that differs is rendered as it was and as it is: ``helm pull`` of the chart where it is no
folder of the repository, then ``helm template``. Nothing of it reaches a cluster, and no server renders a
chart: whoever runs the command fetches it, as themselves. What is not rendered is a note, and no error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from cli.worktree import Worktree
from shared.frozen import dataclass
from shared.json_tree import Json, digest_of, merged
from shared.masking import without_secrets
from shared.platform.changes.comparison import ObjectChange, object_differences
from shared.platform.changes.objects import is_release, mapping_at, release_target, value_at
from shared.platform.changes.report import ObjectLine, ReportSection
from shared.platform.inventory import BuiltObject, Inventory, ObjectId
from shared.platform.source.tree import joined

SECONDS = 30
"""How long one call of helm may take."""
TOGETHER = 90
"""How long all of them may take: what is left then is not rendered."""
_SOURCES = "source.toolkit.fluxcd.io"
_REMOTE = ("https://", "http://", "oci://")
_MESSAGE = 300
_ERROR = "Error: "


class NotRendered(Exception):
    """A chart is not rendered; the message says why."""


@dataclass(frozen=True)
class ChartChange:
    """What a change of a HelmRelease does to its objects on clusters; ``note`` says what is not known."""

    release: str
    section: ReportSection
    note: str = ""

    def as_json(self) -> Mapping[str, Any]:
        """Return it for scripts."""
        changes = [
            {
                "sign": change.sign,
                "object": change.name,
                "fields": [{"path": f.path, "old": f.old, "new": f.new} for f in change.fields],
            }
            for change in self.section.lines
        ]
        clusters = list(self.section.clusters)
        return {"release": self.release, "clusters": clusters, "changes": changes, "note": self.note}


@dataclass(frozen=True)
class _Side:
    """A HelmRelease as one commit has it, with the platform around it and the files of the repository."""

    name: ObjectId
    manifest: Json
    objects: Mapping[ObjectId, BuiltObject]
    worktree: Worktree


def chart_changes(
    before: tuple[Mapping[str, Inventory], Worktree],
    after: tuple[Mapping[str, Inventory], Worktree],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[ChartChange]:
    """Yield what changes of what charts render, once for the clusters that share it; nothing without helm."""
    program = shutil.which("helm")
    if program is None:
        return
    end = clock() + TOGETHER
    having: dict[str, tuple[_Side, _Side, list[str]]] = {}
    for cluster in sorted(before[0].keys() & after[0].keys()):
        sides = (_objects(before[0][cluster]), _objects(after[0][cluster]))
        for name in sorted(sides[0].keys() & sides[1].keys()):
            if is_release(name):
                old, new = (
                    _Side(name, objects[name].manifest, objects, worktree)
                    for objects, (_, worktree) in zip(sides, (before, after), strict=True)
                )
                if _inputs(old) != _inputs(new):
                    key = digest_of([name, _inputs(old), _inputs(new)])
                    having.setdefault(key, (old, new, []))[2].append(cluster)
    for old, new, clusters in having.values():
        yield _changed(program, old, new, tuple(clusters), late=clock() > end)


def _objects(inventory: Inventory) -> dict[ObjectId, BuiltObject]:
    owners = inventory.owners.values()
    return {name: built for owner in owners for name, built in owner.objects.items()}


def _changed(program: str, old: _Side, new: _Side, clusters: tuple[str, ...], *, late: bool) -> ChartChange:
    release = f"{new.name.namespace}/{new.name.name}"
    if late:
        reason = f"all charts together take more than {TOGETHER} seconds"
        return ChartChange(release, ReportSection(clusters, (), ()), f"not rendered: {reason}")
    try:
        with tempfile.TemporaryDirectory(prefix="roadstead-charts-") as folder:
            rendered = [_rendered(program, side, Path(folder, str(n))) for n, side in enumerate((old, new))]
    except NotRendered as error:
        return ChartChange(release, ReportSection(clusters, (), ()), f"not rendered: {error}")
    lines = tuple(_lines(*(objects for objects, _ in rendered)))
    notes = dict.fromkeys(note for _, found in rendered for note in found)
    return ChartChange(release, ReportSection(clusters, (), lines), "; ".join(notes))


def _lines(before: Mapping[ObjectId, Json], after: Mapping[ObjectId, Json]) -> Iterator[ObjectLine]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        fields = object_differences(old, new) if old and new else ()
        if fields or not (old and new):
            left, right = (BuiltObject(side) if side else None for side in (old, new))
            yield ObjectLine(ObjectChange(name, left, right).sign, str(name), fields=fields)


# What a release is rendered from


def _inputs(side: _Side) -> Json:
    """Return all that a rendering depends on, the files of a chart in the repository too."""
    spec, source = mapping_at(side.manifest, "spec"), _source(side)
    found = {key: spec.get(key) for key in ("chart", "chartRef", "values", "valuesFrom")}
    configs = [_data(side, entry) for entry in _entries(spec)]
    folder = _folder(side)
    files = side.worktree.files.blobs
    in_chart = {path: blob for path, blob in files.items() if folder and path.startswith(f"{folder}/")}
    target = dict(release_target(side.name, side.manifest))
    of_source = {key: source.get(key) for key in ("url", "ref", "type")}
    return {**found, "configs": configs, "files": in_chart, "target": target, "source": of_source}


def _source(side: _Side) -> Json:
    """Return the spec of the source of a release's chart, {} where the platform has none."""
    ref = mapping_at(side.manifest, "spec.chart.spec.sourceRef") or mapping_at(side.manifest, "spec.chartRef")
    namespace = str(ref.get("namespace") or side.name.namespace)
    name = ObjectId(_SOURCES, str(ref.get("kind")), namespace, str(ref.get("name")))
    built = side.objects.get(name)
    return mapping_at(built.manifest, "spec") if built else {}


def _folder(side: _Side) -> str:
    """Return the folder of the repository that is the chart, "" where there is none."""
    path = value_at(side.manifest, "spec.chart.spec.chart")
    if value_at(side.manifest, "spec.chart.spec.sourceRef.kind") != "GitRepository" or _source(side):
        return ""
    folder = joined("", str(path or "")) or ""
    return folder if f"{folder}/Chart.yaml" in side.worktree.files.blobs else ""


def _entries(spec: Json) -> list[Json]:
    found = spec.get("valuesFrom")
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def _data(side: _Side, entry: Json) -> Any:
    """Return the values that a ConfigMap of the platform has; None of what is elsewhere, or a Secret."""
    name = ObjectId("", str(entry.get("kind")), side.name.namespace, str(entry.get("name")))
    built = side.objects.get(name) if name.kind == "ConfigMap" else None
    return (
        mapping_at(built.manifest, "data").get(str(entry.get("valuesKey") or "values.yaml"))
        if built
        else None
    )


# Helm


def _rendered(program: str, side: _Side, folder: Path) -> tuple[Mapping[ObjectId, Json], list[str]]:
    """Return the objects of a release, and what is not known of its values; raise NotRendered."""
    folder.mkdir()
    target = release_target(side.name, side.manifest)
    values, notes = _values(side)
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    chart = _chart(program, side, folder)
    more = value_at(side.manifest, "spec.chart.spec.valuesFiles")
    given = [str(chart / Path(str(path)).name) for path in more] if isinstance(more, list) else []
    files = [argument for path in given if Path(path).is_file() for argument in ("--values", path)]
    out = _run(
        *(
            program,
            "template",
            target["spec.releaseName"],
            str(chart),
            *files,
            "--values",
            str(folder / "values.yaml"),
        ),
        *("--namespace", target["spec.targetNamespace"], "--no-hooks", "--skip-tests"),
    )
    try:
        documents = [document for document in yaml.load_all(out, Loader=yaml.CSafeLoader) if document]
    except yaml.YAMLError as error:
        raise NotRendered("what helm writes is no YAML") from error
    return {ObjectId.of(found): found for found in documents if isinstance(found, Mapping)}, notes


def _values(side: _Side) -> tuple[Json, list[str]]:
    values: Json = {}
    notes = []
    spec = mapping_at(side.manifest, "spec")
    for entry in _entries(spec):
        text = _data(side, entry)
        if text is None or entry.get("targetPath"):
            notes.append(f"without the values of {entry.get('kind')} {entry.get('name')}")
            continue
        try:
            found = yaml.safe_load(str(text))
        except yaml.YAMLError:
            raise NotRendered(f"the values of {entry.get('kind')} {entry.get('name')} are no YAML") from None
        values = merged(values, found) if isinstance(found, Mapping) else values
    return merged(values, mapping_at(spec, "values")), notes


def _chart(program: str, side: _Side, folder: Path) -> Path:
    """Return the chart on disk: its folder of the repository, or the archive that helm fetches."""
    if local := _folder(side):
        for path in side.worktree.files.blobs:
            if path.startswith(f"{local}/") and joined("", path) == path:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(side.worktree.read(path))
        return folder / local
    source = _source(side)
    url, ref = str(source.get("url") or ""), mapping_at(source, "ref")
    if not url.startswith(_REMOTE):
        raise NotRendered("the source of its chart is not in this repository")
    name = str(value_at(side.manifest, "spec.chart.spec.chart") or "")
    version = str(value_at(side.manifest, "spec.chart.spec.version") or "")
    if name.startswith("-") or version.startswith("-"):
        raise NotRendered("its chart has no name")
    if not name:  # an OCIRepository is the chart
        version = str(ref.get("semver") or ref.get("tag") or "")
        where = [f"{url}@{ref['digest']}" if ref.get("digest") else url]
    elif url.startswith("oci://"):
        where = [f"{url.rstrip('/')}/{name}"]
    else:
        where = [name, "--repo", url]
    chosen = ["--version", version] if version else []
    (folder / "fetched").mkdir()
    _run(program, "pull", *where, *chosen, "--destination", str(folder / "fetched"))
    found = sorted((folder / "fetched").glob("*.tgz"))
    if not found:
        raise NotRendered("helm fetched no chart")
    return found[0]


def _run(*command: str) -> str:
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotRendered(f"helm takes more than {SECONDS} seconds") from None
    except OSError as error:
        raise NotRendered(f"helm does not start: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["helm gives no reason"]
        reason = next((text for text in lines if text.startswith(_ERROR)), lines[-1])
        raise NotRendered(without_secrets(" ".join(reason.removeprefix(_ERROR).split()), _MESSAGE))
    return done.stdout.decode(errors="replace")
