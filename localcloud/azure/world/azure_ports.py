"""The port ``Azure``, answered by the Azure world in memory."""

from __future__ import annotations

from dataclasses import astuple
from http import HTTPStatus
from typing import Any, TypeVar

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import WriteAnswer, WriteCondition
from localcloud.azure.world.azure_world import AzureWorld
from shared.cluster.failures.azure_failures import refusal
from shared.ports.azure import AzureCall, Conditional, DocumentPage, PageCall, WriteResponse
from shared.resource_ids import ClusterId

T = TypeVar("T")


class WorldAzure:
    """Answers an operation with the world's method of the same name."""

    def __init__(self, world: AzureWorld) -> None:
        self._world = world

    def call(self, operation: AzureCall[T]) -> T:
        """Return the operation's result, or raise the error that the production adapter would raise."""
        answer: Any = None
        try:
            answer = self._world.answering(operation.name)(*_arguments(operation))
        except ArmError as error:
            if not (operation.absent_is_fine and error.status == HTTPStatus.NOT_FOUND):
                body = error.body()
                document = body.get("error", body)
                raise refusal(error.status, document, error.message, retry_after=error.retry_after) from error
        if isinstance(operation, PageCall):
            answer = DocumentPage(*answer)
        return operation.result(self._written(answer) if isinstance(answer, WriteAnswer) else answer)

    def _written(self, accepted: WriteAnswer) -> WriteResponse:
        if accepted.status == HTTPStatus.NOT_MODIFIED:
            return WriteResponse()
        return WriteResponse(self._world.request_id(), created=accepted.status == HTTPStatus.CREATED)


def _arguments(operation: AzureCall[Any]) -> list[Any]:
    target = operation.target
    given = [*([target] if isinstance(target, ClusterId) else astuple(target)), *operation.arguments]
    if isinstance(operation, PageCall):
        given.append(operation.page)
    if isinstance(operation, Conditional):
        given.append(WriteCondition(operation.etag or "", "*" if operation.only_new else ""))
    return given
