"""A fleet as ``roadstead init`` writes it, with 14 clusters of three environments."""

from __future__ import annotations

from cli import templates
from tests.support import fleet_files
from tests.support.arm_client import SUBSCRIPTION

ENVIRONMENTS = ("development", "staging", "production")
NAMES = {f"{ENVIRONMENTS[number % 3]}-{number:02}": ENVIRONMENTS[number % 3] for number in range(14)}
CLASS = "classes/standard.yaml"
NAMESPACES = "platform/base/namespaces.yaml"


def scaffolded() -> dict[str, bytes]:
    """Return its files; the components of Flux are those of the example."""
    texts = templates.repository("example", SUBSCRIPTION, "https://github.com/example/fleet")
    for path in [path for path in texts if "development" in path]:
        texts[path.replace("development", "staging")] = texts[path].replace("development", "staging")
    order = "environments: [development, production]", "environments: [development, staging, production]"
    texts["fleet.yaml"] = texts["fleet.yaml"].replace(*order)
    for name, environment in NAMES.items():
        chosen = {"class": "standard", "environment": environment, "location": "eastus"}
        path, text = templates.cluster(name, chosen)
        texts[path] = text
    files = {path: text.encode() for path, text in texts.items()}
    return files | {"flux/gotk-components.yaml": fleet_files.example()["flux/gotk-components.yaml"]}
