"""The documents tell the truth about names that code also has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli import errorpage
from shared.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in ROOT.rglob("*.md") if not {".venv", ".tools"} & set(path.parts))


def test_every_page_is_found() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "architecture.md", ROOT / "infra" / "README.md"} <= set(PAGES)


def text(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_setting_is_explained() -> None:
    page = text("docs/settings.md")
    named = {name.lower() for name in re.findall(r"`([A-Za-z_]+)`", page)} | {"website_hostname"}
    example = json.loads(text("local.settings.example.json"))["Values"]
    assert {name.lower() for name in Settings.model_fields} - named == set()
    hosts_own = {"functions_worker_runtime", "azurewebjobsstorage"}
    assert {name.lower() for name in example} - named - hosts_own == set()


def test_the_defaults_of_settings_are_those_of_the_code() -> None:
    told = dict(re.findall(r"^\| `([A-Z_]+)` \| `?([\w.:/]+)`? \|", text("docs/settings.md"), re.MULTILINE))
    defaults = {
        name.upper(): f"{field.default:g}" if isinstance(field.default, float | int) else field.default
        for name, field in Settings.model_fields.items()
        if field.default not in (None, "", 0) and not field.is_required()
    }
    assert defaults
    assert {name: told.get(name) for name in defaults} == defaults


def test_the_page_on_errors_is_what_the_table_of_advice_says() -> None:
    assert text("docs/errors.md") == errorpage.page(), "run python -m cli.errorpage > docs/errors.md"


def test_the_readme_names_only_targets_that_make_knows() -> None:
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+) ", text("README.md")))
    assert named
    assert named <= targets | {"and"}
