"""The record of a cluster as it is stored, and as it was by the version before."""

from __future__ import annotations

import json

from pydantic import TypeAdapter, ValidationError

from shared.frozen import replace
from shared.jobs import stored_forms
from shared.jobs.record import ClusterRecord

_STORED = TypeAdapter(ClusterRecord)


def to_json(record: ClusterRecord) -> str:
    """Return the stored form, without the etag."""
    return _STORED.dump_json(record, exclude={"etag"}).decode()


def from_json(text: str, etag: str) -> ClusterRecord:
    """Read the stored form, also that of the version before, which lacks fields of the present one."""
    try:
        record = _STORED.validate_json(text)
    except ValidationError:
        record = _STORED.validate_python(stored_forms.upgrade_cluster(json.loads(text)))
    return replace(record, etag=etag)


def with_etag(record: ClusterRecord, etag: str) -> ClusterRecord:
    """Return the record as the version that was saved."""
    return replace(record, etag=etag)
