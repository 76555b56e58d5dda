"""The example of Azure Service Operator, with definitions in place of those of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from shared.resource_ids import ManagedIdentityId, ObjectRef

ORDERS = ManagedIdentityId("00000000-0000-0000-0000-000000000001", "rg-identities", "orders")
POSTGRES = "dbforpostgresql.azure.com/v1api20250801"
KINDS = (
    ("resources.azure.com", "v1api20200601", "ResourceGroup"),
    ("dbforpostgresql.azure.com", "v1api20250801", "FlexibleServer"),
    ("dbforpostgresql.azure.com", "v1api20250801", "FlexibleServersAdministrator"),
    ("dbforpostgresql.azure.com", "v1api20250801", "FlexibleServersDatabase"),
)
"""The kinds of the example, as the reference of Azure Service Operator has them."""
SERVER = ObjectRef(POSTGRES, "FlexibleServer", "orders-example", "orders")


def definition(group: str, version: str, kind: str) -> dict[str, Any]:
    """Return a definition in place of that of a release, which has hundreds of fields."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


def operator_files(*, installed: bool = True) -> dict[str, bytes]:
    """Return the files of the example; ``installed``: with definitions of the operator."""
    root = Path(__file__).parents[2] / "examples/azure-service-operator"
    files = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
    if installed:
        documents = yaml.safe_dump_all([definition(*kind) for kind in KINDS])
        files["operators/azure-service-operator/operator.yaml"] = documents.encode()
    return files
