"""Table Storage as Azurite serves it, through the client of production."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from azure.core.exceptions import AzureError
from azure.data.tables import TableServiceClient

from localcloud.runtime.port_reservations import PortReservations
from localcloud.runtime.tools import azurite_command
from shared.adapters.tables import table_service

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def connection_string(port: int) -> str:
    url = f"http://127.0.0.1:{port}/devstoreaccount1"
    return f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={url}"


def connect(port: int) -> TableServiceClient:
    return table_service(connection_string=connection_string(port), endpoint=None, credential=None)


@contextmanager
def running() -> Iterator[int]:
    """Run Azurite; yield the port of its tables."""
    with running_storage() as (_, port):
        yield port


@contextmanager
def running_storage() -> Iterator[tuple[int, int]]:
    """Run Azurite; yield the ports of its blobs and of its tables."""
    reservations = PortReservations()
    blob, queue, port = (reservations.reserve(None) for _ in range(3))
    command = azurite_command(blob=blob, queue=queue, table=port)
    with (
        closing(reservations),
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process,
    ):
        deadline = time.monotonic() + 30
        while not _answers(port):
            assert process.poll() is None, "Azurite ended"
            assert time.monotonic() < deadline, "Azurite does not answer"
            time.sleep(0.05)
        yield blob, port
        process.terminate()


def _answers(port: int) -> bool:
    with connect(port) as service:
        try:
            list(service.list_tables(results_per_page=1))
        except AzureError:
            return False
        return True
