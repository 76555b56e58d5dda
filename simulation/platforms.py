"""What Flux applies from the fleet repository: a few contents, so that each is built once in a process."""

from __future__ import annotations

from collections.abc import Mapping

APPS = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: flux-system}\n"
SHOP = "shop"
"""The namespace that some contents have: a commit that takes it away needs an approval."""
_NAMESPACE = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {SHOP}}}\n".encode()
_LATE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: absent}\n"
_BAD = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
_LOST = b"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [apps.yaml, shop.yaml, lost.yaml]
"""

USUAL, CHANGED, WITH_SHOP = "usual", "changed", "with-shop"
UNAPPLIED, UNBUILT, INVALID = "unapplied", "unbuilt", "invalid"
PLATFORMS: Mapping[str, Mapping[str, bytes]] = {
    USUAL: {"apps.yaml": APPS},
    CHANGED: {"apps.yaml": APPS + b"data: {version: '2'}\n"},
    WITH_SHOP: {"apps.yaml": APPS, "shop.yaml": _NAMESPACE},
    UNAPPLIED: {"apps.yaml": APPS, "shop.yaml": _NAMESPACE, "late.yaml": _LATE},
    UNBUILT: {"apps.yaml": APPS, "shop.yaml": _NAMESPACE, "kustomization.yaml": _LOST},
    INVALID: {"apps.yaml": APPS, "shop.yaml": _NAMESPACE, "bad.yaml": _BAD},
}
"""The files below ``platform/``, by the name of what they are."""
HAVE_SHOP = frozenset({WITH_SHOP, UNAPPLIED, UNBUILT, INVALID})
REFUSED = frozenset({UNBUILT, INVALID})
"""Those that no plan may release: kustomize does not build them, or no API server takes them."""
BROKEN = REFUSED | {UNAPPLIED}
"""Those that no cluster can apply; what corrects them has the shop as well."""


def platform_files(name: str) -> dict[str, bytes]:
    """Return the files of the repository that Flux applies."""
    return {f"platform/{path}": content for path, content in PLATFORMS[name].items()}


def corrected(name: str) -> str:
    """Return what a person commits who corrects it."""
    return WITH_SHOP if name in BROKEN else name
