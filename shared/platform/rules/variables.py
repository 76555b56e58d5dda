"""Variables of ``postBuild``: each has a value, and no script loses its own.

Flux replaces ``${name}`` in everything that it builds where a Kustomization has variables (fluxcd/pkg
``kustomize/kustomize_varsub.go``). A name without a value becomes empty, or, with a kustomize-controller that
is strict, stops the whole Kustomization: fluxcd/kustomize-controller#253, #290; rwlove/home-ops#11150.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.language.resolve.problems import nearest
from shared.platform.inventory import Owner
from shared.platform.rules.finding import ClusterPlatform, Files, Finding, full_name, mapping
from shared.platform.rules.places import places_in_text

_DEFAULTED = re.compile(rb"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-=+])")
_SCRIPT = "#!"
_DISABLE = "the annotation kustomize.toolkit.fluxcd.io/substitute: disabled leaves the whole object as it is"


def missing_variables(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each variable without a value, in each file that uses it."""
    for owner in platform.inventory.owners.values():
        for name, files in owner.missing.items():
            for file in files:
                yield Finding(file, None, (), _missing(name, owner), text=f"${{{name}")


def _missing(name: str, owner: Owner) -> str:
    near = nearest(name, sorted(owner.variables)) if owner.variables else ""
    meant = f"did you mean {near}? Otherwise " if near else ""
    return (
        f"${{{name}}} has no value in Kustomization {full_name(owner.id)}, so Flux makes it empty, or "
        f"applies nothing of it; {meant}give it a value, or a default as ${{{name}:=value}}; in a script, "
        f"write $${{{name}}}, and {_DISABLE}"
    )


def defaults_in_scripts(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield a note for each script whose own ``${name:-default}`` Flux replaces by the default."""
    for owner, object_id, built in platform.objects:
        scripts = [
            value
            for value in mapping(built.manifest.get("data")).values()
            if isinstance(value, str) and value.lstrip().startswith(_SCRIPT)
        ]
        if object_id.kind != "ConfigMap" or not scripts or not owner.variables or not built.file:
            continue
        for found in places_in_text(files(built.file) or b"", _DEFAULTED):
            name, text = found[1].decode(), found[0].decode()
            if name not in owner.variables and not any(text in script for script in scripts):
                yield Finding(
                    built.file,
                    object_id,
                    (),
                    f"Flux replaces {text}...}} by its default before the script runs; write ${text}...}} "
                    f"where the script's own variable is meant; {_DISABLE}",
                    is_note=True,
                    text=text,
                )
                break
