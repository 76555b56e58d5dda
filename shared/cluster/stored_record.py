"""The record of a cluster as it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from shared.cluster.forms import StoredText, WrongText
from shared.cluster.recipes import STEPS
from shared.cluster.record import ClusterRecord
from shared.frozen import replace

_STORED = StoredText[ClusterRecord](ClusterRecord)
_PLACE = ("subscriptionId", "resourceGroup", "location", "kubernetesVersion")
"""The texts of a spec that are read without a check of the whole spec."""


def to_json(record: ClusterRecord) -> str:
    """Return the stored form, without the etag."""
    return _STORED.write(record, "etag")


def from_json(text: str, etag: str) -> ClusterRecord:
    """Read the stored form; raise WrongText."""
    record = _STORED.read(text)
    _check(record)
    return replace(record, etag=etag)


def _check(record: ClusterRecord) -> None:
    """Raise WrongText where the parts of a record do not fit together, or its document is not one."""
    if record.job.step.name not in STEPS[record.job.recipe]:
        raise WrongText("job.step.name is no step of job.recipe")
    spec = record.document.get("spec")
    if record.document.get("name") != record.name:
        raise WrongText("document.name is not name")
    if not isinstance(spec, Mapping):
        raise WrongText("document.spec is missing, or has a wrong type")
    for field in _PLACE:
        if not isinstance(spec.get(field), str):
            raise WrongText(f"document.spec.{field} is missing, or has a wrong type")


def with_etag(record: ClusterRecord, etag: str) -> ClusterRecord:
    """Return the record as the version that was saved."""
    return replace(record, etag=etag)
