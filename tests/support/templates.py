"""The Bicep templates, and the settings that they give each app."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from shared.settings import App
from tests.support.bicep import Template

INFRA = Path(__file__).parent.parent.parent / "infra"
TEMPLATES = {path.name: Template(path) for path in sorted(INFRA.glob("**/*.bicep"))}


def settings_of(app: App) -> dict[str, str]:
    """Return the settings of one app: those of all apps, and its own."""
    main = TEMPLATES["main.bicep"]
    given: Any = main.of("module")[app].value["params"]["settings"]
    more = dict(re.findall(r"^\s+(\w+): (.+)$", given, re.MULTILINE))
    own = re.findall(r"^    (\w+): ", app_settings_text(), re.MULTILINE)
    return {**main.of("var")["settings"].value, **more, **dict.fromkeys(own, "set in function.bicep")}


def app_settings() -> dict[str, str]:
    """Return the settings of all apps together."""
    return {name: value for app in App for name, value in settings_of(app).items()}


def app_settings_text() -> str:
    """Return the source of what function.bicep sets on every app."""
    text: str = TEMPLATES["function.bicep"].resource("Microsoft.Web/sites/config").value["properties"]
    return text
