"""A whole life with a bootstrap secret: nothing that is stored, sent, shown or logged has its value."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.views.clusters import cluster_view
from shared.app.api.views.tree import tree_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import VaultUnavailable
from shared.cluster.record import to_json
from shared.cluster.record_parts import Phase
from shared.masking import Masker
from shared.ports.masked import masked
from tests.support.bootstrap_secrets import AGE, NEXT, VALUE, patched, value_of, with_value
from tests.support.checks import check
from tests.support.one_cluster import files, pool, record
from tests.support.pipeline_runs import phases, push

HELD = frozenset({"vault", "vaults", "kubernetes"})
"""Where values belong: the vault itself, and the clusters."""


def forms(value: str) -> Iterator[str]:
    """Yield a value, its encodings, and the digests from which it could be guessed."""
    raw = value.encode()
    yield from (value, base64.b64encode(raw).decode(), base64.b64encode(raw).decode().rstrip("="))
    yield value.encode().hex()
    for salt in ("", "example", "platform", "fleet-age", "age.agekey"):
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            digest = hashlib.new(algorithm, (salt + value).encode()).hexdigest()
            yield digest[:16]
    yield hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def everything(value: Any, seen: set[int] | None = None) -> Iterator[str]:
    """Yield every text that can be reached from a value, without the vault and the clusters."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, int | float | type | None):
        return
    seen.add(id(value))
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from everything(key, seen)
            yield from everything(inner, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from everything(inner, seen)
    elif hasattr(value, "__dict__") and not callable(value):
        for name, inner in vars(value).items():
            if name not in HELD:
                yield from everything(inner, seen)


def stored(cloud: MemoryCloud) -> Iterator[str]:
    """Yield what the state, the queues, the repository and the routes of a cloud have."""
    for place in (cloud.state, cloud.broker, cloud.repository, cloud.routes, cloud.azure.accepted):
        yield from everything(place)
    found = cloud.state.cluster("one")
    if found is None:
        return
    yield to_json(found)
    for view in (
        why_view("one", cloud.ports),
        tree_view("one", cloud.ports),
        cluster_view(found, None, cloud.state.sweep(), cloud.clock()),
        cloud.state.events("one", 500),
    ):
        yield repr(view)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield out
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.lives
def test_a_life_with_rotation_outage_loss_and_removal_leaves_no_trace_of_a_value(logged: io.StringIO) -> None:
    cloud, texts = with_value(), list[str]()

    def look() -> None:
        texts.extend(stored(cloud))

    push(cloud, files(AGE))
    cloud.run()
    assert value_of(cloud) == VALUE
    look()
    with_value(cloud, NEXT)
    check(cloud)
    assert value_of(cloud) == NEXT
    look()
    cloud.vaults.failing["platform"] = VaultUnavailable("the vault platform did not answer")
    check(cloud)
    push(cloud, files(AGE.replace("  bootstrapSecrets", f"{pool()}  bootstrapSecrets")))
    cloud.run()
    look()
    cloud.vaults.failing.clear()
    cloud.vault.enable("fleet-age", enabled=False)
    check(cloud)
    cloud.run(seconds=3600)
    assert phases(cloud) == {"one": Phase.FAILED}
    look()
    cloud.vault.enable("fleet-age", enabled=True)
    patched(cloud, {"data": {"age.agekey": base64.b64encode(b"by-hand").decode()}})
    check(cloud)
    replay("one", "an-operator", cloud.ports)
    cloud.run()
    assert value_of(cloud) == NEXT
    look()
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    look()
    whole = "\n".join([*texts, logged.getvalue()])
    assert "fleet-age" in whole
    assert [form for value in (VALUE, NEXT) for form in forms(value) if form in whole] == []


def test_a_text_that_repeats_a_value_is_masked_once_it_was_read() -> None:
    mask = Masker([])
    cloud = with_value()
    assert VALUE in mask(f"before: {VALUE}"), "no value is known before it is read"
    ports = masked(cloud.ports, mask)
    assert ports.vaults.secret("platform", "fleet-age").value == VALUE
    encoded = base64.b64encode(VALUE.encode()).decode()
    for text in (f"refused {VALUE} here", f"refused {encoded} here", json.dumps({"data": VALUE})):
        assert VALUE not in mask(text)
        assert encoded not in mask(text)


def test_an_error_of_a_cluster_that_repeats_a_value_is_stored_without_it() -> None:
    cloud = with_value()
    mask = Masker([])
    cloud.with_ports(lambda ports: masked(ports, mask))
    kubernetes = cloud.ports.kubernetes

    class Echo:
        """A cluster whose refusals repeat what they were sent."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def connect(self, *args: Any, **kwargs: Any) -> Any:
            return Echo(self._inner.connect(*args, **kwargs))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def apply(self, manifest: Any, *, dry_run: bool = False) -> Any:
            if manifest["kind"] == "Secret":
                raise VaultUnavailable(f"refused: {manifest['data']} and {VALUE}")
            return self._inner.apply(manifest, dry_run=dry_run)

    cloud.with_ports(lambda ports: masked(replace(ports, kubernetes=Echo(kubernetes)), mask))
    push(cloud, files(AGE))
    cloud.run(seconds=300)
    assert "refused" in record(cloud).job.reason
    whole = "\n".join(stored(cloud))
    assert [form for form in forms(VALUE) if form in whole] == []
