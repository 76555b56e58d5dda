"""The catalogue of documented errors: the one table that people's answers and retries are read from.

The files in ``tables`` have an entry by its key, with the fields of ``CatalogueEntry`` that are not as usual:
the code is the last part of the key, the actor that of ``_USUAL``, and the remedy of an InvalidManifest to
correct the value. A file may begin with what is ``usual`` in it. ``statuses`` are exit statuses of the script
that sets a node up, in the texts of the codes ``SETUP``. ``page`` is one of Microsoft's support articles
about AKS, and ``docs`` a page of the documentation of Azure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator, model_validator

from shared.cluster.failures import errors
from shared.cluster.failures.errors import ReconcileError
from shared.frozen import dataclass


class Actor(StrEnum):
    """Who has to act before the same request can succeed."""

    NOBODY = "nobody"
    AUTHOR = "the author of the manifest"
    NETWORK = "the network team"
    ACCESS = "who assigns roles in Azure"
    SUBSCRIPTION = "the owner of the subscription"
    POLICY = "the owner of the policy"
    WORKLOAD = "the owner of the workload"
    PLATFORM = "who operates what runs on the cluster"
    OPERATOR = "the operator of Roadstead"
    SUPPORT = "Azure support"


@dataclass(frozen=True)
class CatalogueEntry:
    """An entry of the catalogue.

    ``key`` is its name everywhere and is stored, such as "network/SubnetIsFull". It is for an error whose
    code is among ``codes``, and, if they are given, whose ``subcode`` is this one and whose text has a part
    of ``says``; upper and lower case are the same. With ``family``, ``codes`` are beginnings or ends of
    codes: only where the service documents a family. An error that ``wraps`` says what failed, and the error
    inside says why.

    ``kind`` says what happens next. ``meaning`` and ``remedy`` are a sentence each; ``advice`` fills fields
    of the remedy from the service's message, such as "{scope}". ``link`` is the page for a reader, ``source``
    a path in a repository or a function of a library that says so. Where it has the names of the codes alone,
    ``assumes`` says in a sentence what the entry takes for granted; elsewhere it is "".
    """

    key: str
    kind: type[ReconcileError]
    codes: tuple[str, ...]
    meaning: str
    remedy: str
    actor: Actor
    subcode: str = ""
    says: tuple[str, ...] = ()
    family: bool = False
    wraps: bool = False
    link: str = ""
    source: str = ""
    assumes: str = ""

    def fits(self, code: str, subcode: str, text: str) -> bool:
        """Return whether this entry is for an error; all three are in lower case."""
        codes = [known.lower() for known in self.codes]
        named = code in codes
        if self.family:
            named = any(code.startswith(known) or code.endswith(known) for known in codes)
        described = not self.says or any(part.lower() in text for part in self.says)
        return named and described and (not self.subcode or self.subcode.lower() == subcode)

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """How specific the entry is: of two that fit, the one with the higher rank is taken."""
        return (not self.family, bool(self.subcode), bool(self.says))


class Catalogue:
    """The entries of some tables, which are read on first use.

    Of entries that are equally specific the first counts: the status of a node says more than a wrapper.
    """

    def __init__(self, *tables: str) -> None:
        self._tables = tables

    @cached_property
    def entries(self) -> tuple[CatalogueEntry, ...]:
        """The entries, the most specific ones first."""
        tables = (files(__package__) / "tables" / f"{name}.yaml" for name in self._tables)
        read = (entry for table in tables for entry in entries_in(table.name, table.read_text("utf-8")))
        return tuple(sorted(read, key=lambda entry: entry.rank, reverse=True))

    def find(self, code: str, *, subcode: str = "", text: str = "") -> CatalogueEntry | None:
        """Return the most specific entry for an error, None for one that none documents."""
        flat = (code.lower(), subcode.lower(), text.lower())
        return next((entry for entry in self.entries if entry.fits(*flat)), None)

    def find_by_text(self, text: str) -> CatalogueEntry | None:
        """Return the most specific entry for what a text says, of a failure that no code explains."""
        found = self.find(WITHOUT_CODE, text=text)
        return found if found is not None and found.says else None


WITHOUT_CODE = "Failed"
"""The code of what failed for no reason that a code says."""
ANY = "any"
"""The code of an entry whose reason may be any, or none."""
AZURE = Catalogue("access", "nodes", "aks", "arm", "compute", "features", "network", "rules")
KUBERNETES = Catalogue("admission", "kubernetes")
ADMISSION = Catalogue("admission")
FLUX = Catalogue("flux")
"""What Flux reports, by the reason of its condition."""


def entry_of(key: str) -> CatalogueEntry | None:
    """Return an entry by its key, as it is stored with a failure; None for "" and an unknown key."""
    return _by_key().get(key)


@cache
def _by_key() -> Mapping[str, CatalogueEntry]:
    return {entry.key: entry for entry in (*AZURE.entries, *KUBERNETES.entries, *FLUX.entries)}


_WRAPPERS = (
    *("", "Failed", "Unspecified", "UpgradeFailed", "ProvisioningFailed", "AgentPoolOperationError"),
    *("ReconcileMachineFailed", "ScaleVMASAgentPoolFailed", "UpgradeVMASAgentPoolFailed"),
    *("CreateVMASAgentPoolFailed", "DeleteVMSSAgentPoolFailed", "ScaleVMSSAgentPoolFailed"),
    *("CreateVMSSAgentPoolFailed", "UpgradeVMSSAgentPoolFailed", "ReconcileVMSSAgentPoolFailed"),
    *("UpdateVMSSAgentPoolFailed", "ManagedClusterStopError", "ManagedClusterStartError", "ScaleError"),
    *("TemplateDeploymentFailed", "DeployTemplateError", "UpdateAgentPoolNodeImageReferenceFailed"),
)
"""Codes that say that a node pool, or the cluster, could not be changed, stopped or started, and not why."""
_LISTS: Mapping[str, tuple[str, ...]] = {
    "WRAPPERS": _WRAPPERS,
    "SETUP": ("VMExtensionProvisioningError", "VMExtensionHandlerNonTransientError", *_WRAPPERS),
}
"""What stands for several codes in a table."""
_USUAL: Mapping[type[ReconcileError], Actor] = {
    **dict.fromkeys((errors.InvalidManifest, errors.Immutable, errors.TooLarge), Actor.AUTHOR),
    **dict.fromkeys(
        (errors.Interrupted, errors.Conflict, errors.Throttled, errors.OutOfCapacity), Actor.NOBODY
    ),
    **dict.fromkeys((errors.RoleNotEffective, errors.Unauthorized), Actor.ACCESS),
    errors.Obstructed: Actor.NETWORK,
    errors.QuotaExceeded: Actor.SUBSCRIPTION,
    errors.Unexplained: Actor.SUPPORT,
    errors.Unauthenticated: Actor.OPERATOR,
    errors.PolicyDenied: Actor.POLICY,
    errors.WebhookDown: Actor.PLATFORM,
    errors.Blocked: Actor.WORKLOAD,
}
"""Who mostly acts, by the class of error."""
_SUPPORT = "MicrosoftDocs/SupportArticles-docs support/azure/azure-kubernetes/"
_LEARN = "https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/"
_CODES = "the package apierror of the resource provider of AKS, which Microsoft published: type ErrorCode"
"""A source without a page: names of codes, some with a sentence."""
_FORMS = ("exit status={}", 'exitcode": "{}"', "exitcode: {}")
_ENDS = (" ", "\n", "\\", ",", ":", ";", '"', ".", ")")


class _StoredEntry(BaseModel):
    """An entry as a table has it."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    kind: type[ReconcileError]
    meaning: str
    remedy: str = ""
    codes: str | list[str] = ""
    statuses: list[int | str] = []
    subcode: str = ""
    says: list[str] = []
    family: bool = False
    wraps: bool = False
    actor: Actor | None = None
    page: str = ""
    docs: str = ""
    source: str = ""
    link: str = ""
    assumes: str = ""

    @field_validator("kind", "actor", mode="before")
    @classmethod
    def _named(cls, name: str, field: ValidationInfo) -> Any:
        known: Mapping[str, Any] = vars(errors) if field.field_name == "kind" else Actor.__members__
        return known.get(name if field.field_name == "kind" else name.upper(), name)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not (self.source or self.page or self.docs):
            raise ValueError("nothing says where it is documented")
        if not (self.actor or self.kind in _USUAL):
            raise ValueError("nothing says who acts")
        if not (self.remedy or self.kind is errors.InvalidManifest):
            raise ValueError("nothing says what to do")
        return self


def entries_in(table: str, text: str) -> Iterator[CatalogueEntry]:
    """Yield the entries of a table; raise ValueError for one that is none, with its place."""
    read = yaml.load(text, Loader=yaml.CSafeLoader)
    usual = read.pop("usual", {})
    for key, stored in read.items():
        try:
            yield _entry(key, _StoredEntry.model_validate(usual | stored))
        except ValidationError as error:
            line = text[: text.index(f"{key}:")].count("\n") + 1
            first = error.errors()[0]
            what = ": ".join((*map(str, first["loc"]), first["msg"]))
            raise ValueError(f"{table}:{line}: {key}: {what}") from None


def _entry(key: str, stored: _StoredEntry) -> CatalogueEntry:
    kind, statuses = stored.kind, tuple(_exits(stored.statuses))
    codes = "SETUP" if statuses else stored.codes or key.partition("/")[2]
    source, link = stored.source.replace("{codes}", _CODES), stored.link
    if stored.page:
        source, link = f"{_SUPPORT}{stored.page}.md", f"{_LEARN}{stored.page}"
    if stored.docs:
        repository = "azure-aks-docs" if stored.docs.startswith("aks/") else "azure-docs"
        source = f"MicrosoftDocs/{repository} articles/{stored.docs}.md"
        link = f"https://learn.microsoft.com/azure/{stored.docs}"
    named = codes.split() if isinstance(codes, str) else codes
    return CatalogueEntry(
        key,
        kind,
        tuple(code for name in named for code in _LISTS.get(name, (name,))),
        stored.meaning,
        stored.remedy or "Correct the value in the message.",
        stored.actor or _USUAL[kind],
        stored.subcode,
        (*stored.says, *statuses),
        stored.family,
        stored.wraps,
        link,
        source,
        stored.assumes,
    )


def _exits(statuses: Iterable[int | str]) -> Iterator[str]:
    """Yield what a text has of exit statuses, each a number or a range such as "83-87"."""
    for status in statuses:
        first, _, last = str(status).partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield from (f"{form.format(number)}{end}" for form in _FORMS for end in _ENDS)
