"""What is wrong with the components of Flux that a cluster pins, before any cluster gets them.

The worker reads the same file with the same functions (``flux_objects``, ``flux_lockdown``) when it installs
Flux, steps later; a pull request shows it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.json_tree import Json
from shared.kubernetes.flux_lockdown import (
    FLAGS,
    identity_kept,
    identity_kept_by_operator,
    is_locked_down,
    keeps_identity,
    locked_down,
)
from shared.kubernetes.flux_objects import ComponentsError, components
from shared.language.desired import Desired
from shared.language.resolve.problems import Problem, problem_at
from shared.language.yaml.nodes import Mark
from shared.platform.changes.objects import DEFINITION
from shared.platform.inventory import ObjectId

_LFS = b"version https://git-lfs.github.com/spec/"
_EXPORT = "write it with flux install --export > FILE"
_OF_FLUX = (
    ("GitRepository", "source-controller"),
    ("Kustomization", "kustomize-controller"),
)
"""What applies a repository: the kinds, and their controllers."""
_BLOCKING, _CONFINING = "--no-cross-namespace-refs=true", "--default-service-account="


def components_problem(content: bytes, file: str, *, desired: Desired) -> Problem | None:
    """Return why a file cannot be the components of Flux of a cluster, None where it can."""
    line, message = _fault(content, desired) or (0, "")
    return problem_at(Mark(file, line, 1), "", message) if message else None


def definitions_in(content: bytes) -> Sequence[Json]:
    """Return the definitions of kinds in a file of components, () of one that cannot be read."""
    try:
        return [found for found in components(content) if found["kind"] == DEFINITION]
    except ComponentsError:
        return ()


def policies_in(content: bytes) -> frozenset[ObjectId]:
    """Return the network policies in a file of components, none of one that cannot be read."""
    try:
        found = components(content)
    except ComponentsError:
        return frozenset()
    return frozenset(ObjectId.of(item) for item in found if item["kind"] == "NetworkPolicy")


def controllers_with(content: bytes, desired: Desired) -> tuple[frozenset[str], frozenset[str]]:
    """Return the controllers that refuse other namespaces, and those that act as the account ``default``.

    The flags are those of the file, and those that a lock-down adds.
    """
    try:
        found = components(content)
    except ComponentsError:
        return frozenset(), frozenset()
    flagged = locked_down(found) if is_locked_down(desired) else found
    args = dict(_arguments(flagged))
    if desired.spec.flux.instance is not None:
        args = dict(FLAGS) if is_locked_down(desired) else {}
    return (
        frozenset(name for name, given in args.items() if _BLOCKING in given),
        frozenset(name for name, given in args.items() if any(a.startswith(_CONFINING) for a in given)),
    )


def _fault(content: bytes, desired: Desired) -> tuple[int, str] | None:
    if content.startswith(_LFS):
        return 1, (
            "is a pointer of Git LFS, and not the file: Roadstead reads git alone; take the file out of LFS "
            "(git lfs untrack, then git add --renormalize)"
        )
    try:
        found = components(content)
        if desired.spec.flux.instance is not None:
            _check_operator(found, desired)
        elif keeps_identity(desired):
            identity_kept(found)
    except ComponentsError as error:
        return _line(content, str(error)), f"{error}; {_EXPORT}"
    missing = list(_missing(found, is_operator=desired.spec.flux.instance is not None))
    if missing:
        return 1, f"has no {' and no '.join(missing)}, so these are not the components of Flux; {_EXPORT}"
    return None


def _check_operator(found: Sequence[Json], desired: Desired) -> None:
    instance = desired.spec.flux.instance
    if instance is not None and keeps_identity(desired):
        identity_kept_by_operator(found, instance.distribution.version)


def _missing(found: Sequence[Json], *, is_operator: bool) -> Iterator[str]:
    kinds = {
        str(((item.get("spec") or {}).get("names") or {}).get("kind"))
        for item in found
        if item["kind"] == DEFINITION
    }
    running = {ObjectId.of(item).name for item in found if item["kind"] == "Deployment"}
    if is_operator:
        if "FluxInstance" not in kinds:
            yield "definition of FluxInstance"
        return
    for kind, controller in _OF_FLUX:
        if kind not in kinds:
            yield f"definition of {kind}"
        if controller not in running:
            yield f"Deployment {controller}"


def _line(content: bytes, error: str) -> int:
    """Return the line that an error is about: its own, or the first line of the document that it counts."""
    words = error.replace(":", " ").split()
    for word, number in pairwise(words):
        if word == "line" and number.isdecimal():
            return int(number)
        if word == "document" and number.isdecimal():
            return _start_of(content, int(number))
    return 1


def _start_of(content: bytes, number: int) -> int:
    """Return the first line with content of a document, by its number among those that have some."""
    count, is_new = 0, True
    for line, text in enumerate(content.splitlines(), start=1):
        if text.startswith(b"---"):
            is_new = True
        elif is_new and text.strip() and not text.lstrip().startswith(b"#"):
            count, is_new = count + 1, False
            if count == number:
                return line
    return 1


def _arguments(found: Sequence[Json]) -> Iterator[tuple[str, Sequence[str]]]:
    for item in found:
        if item["kind"] == "Deployment":
            containers = item["spec"]["template"]["spec"]["containers"]
            yield str(item["metadata"]["name"]), containers[0].get("args") or ()
