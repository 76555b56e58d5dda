"""A documented error of a service: what happens next, what it means, what to do, and who does it."""

from __future__ import annotations

from enum import StrEnum

from shared.cluster.failures.errors import ReconcileError
from shared.frozen import dataclass, replace


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
class Entry:
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
        told = not self.says or any(part.lower() in text for part in self.says)
        return named and told and (not self.subcode or self.subcode.lower() == subcode)

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """How specific the entry is: of two that fit, the one with the higher rank is taken."""
        return (not self.family, bool(self.subcode), bool(self.says))


_SUPPORT = "MicrosoftDocs/SupportArticles-docs support/azure/azure-kubernetes/"
_LEARN = "https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/"


def support(page: str, *entries: Entry) -> tuple[Entry, ...]:
    """Return the entries of a page of Microsoft's support articles about AKS, with its link and its path."""
    return sourced(f"{_SUPPORT}{page}.md", *entries, link=f"{_LEARN}{page}")


def sourced(source: str, *entries: Entry, link: str = "") -> tuple[Entry, ...]:
    """Return entries with their source, and a link where people can read it."""
    return tuple(replace(entry, source=source, link=entry.link or link) for entry in entries)


def also(entry: Entry, key: str, codes: tuple[str, ...], *says: str) -> tuple[Entry, Entry]:
    """Return an entry, and one for the same error by other codes and maybe the texts of ``says``."""
    return entry, replace(entry, key=key, codes=codes, says=says, subcode="")
