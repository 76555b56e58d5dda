"""Addresses that a commit names, over HTTPS: on hosts that whoever runs the app allows, and within bounds.

The address that was reached is looked at before the TLS handshake, so no proxy of the environment is used.
Nothing of an answer leaves this file but its status, the values of a Prometheus, and a short text with which
a Prometheus refuses a query: prometheus.io/docs/prometheus/latest/querying/api.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, Field, ValidationError
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from shared.adapters.transport import Reached, address_of, looking
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    TooLarge,
    Unavailable,
    Unexpected,
    from_address,
)
from shared.cluster.failures.retry import retry_after
from shared.masking import cut
from shared.reachable_addresses import Network, refused_address

SECONDS = 5.0
"""Limit on connecting, and on each wait for more of an answer."""
TOTAL_SECONDS = 10.0
"""Limit on a question, from its first connection to the end of the answer."""
MAX_BYTES = 64 << 10
"""Limit on an answer of a Prometheus."""
_EXCERPT = 100
_EVALUATION = "4s"
"""How long a Prometheus may work on a query, so that its answer comes in time."""


class HttpsEndpoints:
    """Asks addresses of some ``hosts``, each with its port; in some ``networks``, or any but special ones."""

    def __init__(self, hosts: frozenset[str], networks: Sequence[Network] = ()) -> None:
        self._hosts, self._networks = hosts, tuple(networks)

    def status(self, url: str) -> int:
        """Return the status with which an address answers; what follows the status is not read."""
        with self._asked(url, {}) as response:
            return response.status_code

    def query(self, url: str, query: str) -> Sequence[float]:
        """Return the values with which a Prometheus answers."""
        address = f"{url.rstrip('/')}/api/v1/query"
        with self._asked(address, {"query": query, "timeout": _EVALUATION}) as response:
            body = _body(response)
            if not 200 <= response.status_code < 300:
                raise _refused(response, body)
            return _values(body)

    @contextmanager
    def _asked(self, url: str, query: Mapping[str, str]) -> Iterator[requests.Response]:
        host = self._allowed(url)
        with _Deadline(TOTAL_SECONDS) as deadline, _session(self._look(host, deadline), url) as session:
            try:
                with session.get(
                    url,
                    params=query,
                    headers={"User-Agent": "roadstead", "Accept-Encoding": "identity"},
                    timeout=SECONDS,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    yield response
                if deadline.over:  # an answer that was cut off may look like one
                    raise Unavailable(f"{host} does not answer within {TOTAL_SECONDS:g} s")
            except (requests.RequestException, HTTPError, OSError, ValueError) as error:
                # Not chained: the library's text may have parts of an answer.
                raise Unavailable(f"{host} does not answer: {type(error).__name__}") from None

    def _allowed(self, url: str) -> str:
        """Return the host of an address with its port; raise Dependency for one that nobody has allowed."""
        try:
            parts = urlsplit(url)
            host = f"{(parts.hostname or '').lower()}:{parts.port or 443}"
            usable = parts.scheme == "https" and parts.username is None
        except ValueError:
            usable, host = False, ""
        if not usable:
            raise Dependency("the address of the check is not an https:// URL")
        if host not in self._hosts:
            shown = host.removesuffix(":443")
            raise Dependency(
                f"{shown} is not in the app setting ROLLOUT_CHECK_HOSTS; whoever runs the app adds it there"
            )
        return host

    def _look(self, host: str, deadline: _Deadline) -> Reached:
        def reached(opened: socket.socket) -> None:
            why = refused_address(address_of(opened), self._networks)
            if why:
                raise Dependency(f"{host} is left alone: {why}; see the app setting ROLLOUT_CHECK_NETWORKS")
            deadline.watch(opened)

        return reached


class _Deadline:
    """Shuts the connections down that are still in use after so many seconds, whatever they wait for.

    A limit on each read alone lets somebody who sends a byte in time, and again, go on without end.
    """

    def __init__(self, seconds: float) -> None:
        self._watched, self._over = list[socket.socket](), threading.Event()
        self._timer = threading.Timer(seconds, self._end)

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self._over.is_set()

    def watch(self, opened: socket.socket) -> None:
        """Shut a connection down at the end, also once it is TLS."""
        self._watched.append(opened.dup())
        if self.over:
            self._end()

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for connection in self._watched:
            connection.close()

    def _end(self) -> None:
        self._over.set()
        for connection in self._watched:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _session(reached: Reached, url: str) -> requests.Session:
    """Return a session that looks at what it reaches; of the environment it takes the authorities alone."""
    session = requests.Session()
    session.verify = session.merge_environment_settings(url, {}, False, None, None)["verify"]
    session.trust_env = False
    session.adapters.clear()
    session.mount("https://", _CheckingAdapter(reached))
    return session


class _CheckingAdapter(HTTPAdapter):
    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)

        class EndpointPool(HTTPSConnectionPool):
            ConnectionCls = looking(self._reached)

        self.poolmanager.pool_classes_by_scheme = {"https": EndpointPool}


def _body(response: requests.Response) -> bytes:
    """Return the body of an answer; raise TooLarge."""
    body = response.raw.read(MAX_BYTES + 1, decode_content=False)
    if len(body) > MAX_BYTES:
        raise TooLarge(f"the answer is larger than {MAX_BYTES >> 10} KiB; aggregate in the query")
    return bytes(body)


def _refused(response: requests.Response, body: bytes) -> ReconcileError:
    described = f"Prometheus answers with the status {response.status_code}{_excerpt(body)}"
    return from_address(response.status_code, described, retry_after=retry_after(dict(response.headers)))


class _PrometheusError(BaseModel):
    status: Literal["error"]
    errorType: str
    error: str


class _Scalar(BaseModel):
    resultType: Literal["scalar"]
    result: tuple[float, float]


class _Sample(BaseModel):
    value: tuple[float, float]


class _Vector(BaseModel):
    resultType: Literal["vector"]
    result: tuple[_Sample, ...]


class _Answer(BaseModel):
    status: Literal["success"]
    data: Annotated[_Scalar | _Vector, Field(discriminator="resultType")]
    warnings: tuple[str, ...] = ()


def _excerpt(body: bytes) -> str:
    """Return what a Prometheus says is wrong with a query, cut short, "" for any other body."""
    try:
        found = _PrometheusError.model_validate_json(body)
    except ValidationError:
        return ""
    text = "".join(
        character if character.isprintable() else " " for character in f"{found.errorType}: {found.error}"
    )
    return f": {cut(text, _EXCERPT)}"


def _values(body: bytes) -> Sequence[float]:
    try:
        answer = _Answer.model_validate_json(body)
    except ValidationError:
        # Not chained: the library's text has parts of the answer.
        raise Unexpected("the answer is no scalar and no vector of numbers of a Prometheus") from None
    if answer.warnings:
        raise Unexpected("Prometheus answers with warnings, so some data may be missing")
    if isinstance(answer.data, _Scalar):
        return (answer.data.result[1],)
    return tuple(sample.value[1] for sample in answer.data.result)
