"""The messages between the Functions host and its Python worker, as far as our triggers need them.

Names, types and numbers are those of ``FunctionRpc.proto`` (Azure/azure-functions-language-worker-protobuf).
They are real protobuf messages, so that a value of another type is refused here as it is in Azure: a header
that is a number, say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

PACKAGE = "AzureFunctionsRpcMessages"

ENUMS: Mapping[str, Sequence[str]] = {
    "StatusResult.Status": ("Failure", "Success", "Cancelled"),
    "BindingInfo.Direction": ("in", "out", "inout"),
    "BindingInfo.DataType": ("undefined", "string", "binary", "stream"),
    "RpcHttpCookie.SameSite": ("None", "Lax", "Strict", "ExplicitNone"),
    "RpcRetryOptions.RetryStrategy": ("exponential_backoff", "fixed_delay"),
}

MESSAGES: Mapping[str, Sequence[str]] = {
    "StreamingMessage": (
        "content: WorkerInitRequest worker_init_request 17",
        "content: WorkerInitResponse worker_init_response 16",
        "content: FunctionLoadRequest function_load_request 8",
        "content: FunctionLoadResponse function_load_response 9",
        "content: InvocationRequest invocation_request 4",
        "content: InvocationResponse invocation_response 5",
        "content: FunctionsMetadataRequest functions_metadata_request 29",
        "content: FunctionMetadataResponse function_metadata_response 30",
    ),
    "WorkerInitRequest": (
        "string host_version 1",
        "map capabilities 2",
        "string worker_directory 4",
        "string function_app_directory 5",
    ),
    "WorkerInitResponse": (
        "map capabilities 2",
        "StatusResult result 3",
        "WorkerMetadata worker_metadata 4",
    ),
    "WorkerMetadata": (
        "string runtime_name 1",
        "string runtime_version 2",
        "string worker_version 3",
        "string worker_bitness 4",
        "map custom_properties 5",
    ),
    "StatusResult": ("StatusResult.Status status 4", "string result 1", "RpcException exception 2"),
    "RpcException": ("string source 3", "string stack_trace 1", "string message 2"),
    "FunctionsMetadataRequest": ("string function_app_directory 1",),
    "FunctionMetadataResponse": (
        "repeated RpcFunctionMetadata function_metadata_results 1",
        "StatusResult result 2",
        "bool use_default_metadata_indexing 3",
    ),
    "FunctionLoadRequest": ("string function_id 1", "RpcFunctionMetadata metadata 2"),
    "FunctionLoadResponse": ("string function_id 1", "StatusResult result 2"),
    "RpcFunctionMetadata": (
        "string name 4",
        "string directory 1",
        "string script_file 2",
        "string entry_point 3",
        "map BindingInfo bindings 6",
        "bool is_proxy 7",
        "string language 9",
        "repeated string raw_bindings 10",
        "string function_id 13",
        "bool managed_dependency_enabled 14",
        "RpcRetryOptions retry_options 15",
        "map properties 16",
    ),
    "BindingInfo": (
        "string type 2",
        "BindingInfo.Direction direction 3",
        "BindingInfo.DataType data_type 4",
        "map properties 5",
    ),
    "RpcRetryOptions": (
        "int32 max_retry_count 2",
        "google.protobuf.Duration delay_interval 3",
        "google.protobuf.Duration minimum_interval 4",
        "google.protobuf.Duration maximum_interval 5",
        "RpcRetryOptions.RetryStrategy retry_strategy 6",
    ),
    "InvocationRequest": (
        "string invocation_id 1",
        "string function_id 2",
        "repeated ParameterBinding input_data 3",
        "map TypedData trigger_metadata 4",
        "RpcTraceContext trace_context 5",
        "RetryContext retry_context 6",
    ),
    "InvocationResponse": (
        "string invocation_id 1",
        "repeated ParameterBinding output_data 2",
        "TypedData return_value 4",
        "StatusResult result 3",
    ),
    "RpcTraceContext": ("string trace_parent 1", "string trace_state 2", "map attributes 3"),
    "RetryContext": ("int32 retry_count 1", "int32 max_retry_count 2", "RpcException exception 3"),
    "ParameterBinding": ("string name 1", "rpc_data: TypedData data 2"),
    "TypedData": (
        "data: string string 1",
        "data: string json 2",
        "data: bytes bytes 3",
        "data: bytes stream 4",
        "data: RpcHttp http 5",
        "data: sint64 int 6",
        "data: double double 7",
    ),
    "RpcHttp": (
        "string method 1",
        "string url 2",
        "map headers 3",
        "TypedData body 4",
        "map params 10",
        "string status_code 12",
        "map query 15",
        "bool enable_content_negotiation 16",
        "repeated RpcHttpCookie cookies 19",
    ),
    "RpcHttpCookie": (
        "string name 1",
        "string value 2",
        "NullableString domain 3",
        "NullableString path 4",
        "NullableTimestamp expires 5",
        "NullableBool secure 6",
        "NullableBool http_only 7",
        "RpcHttpCookie.SameSite same_site 8",
        "NullableDouble max_age 9",
    ),
    "NullableString": ("string: string value 1",),
    "NullableDouble": ("double: double value 1",),
    "NullableBool": ("bool: bool value 1",),
    "NullableTimestamp": ("timestamp: google.protobuf.Timestamp value 1",),
}
"""The fields of each message: "[oneof:] [repeated|map] [type] name number"; keys of a map are strings."""


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="FunctionRpc.proto", package=PACKAGE, syntax="proto3")
    file.dependency.extend((Duration.DESCRIPTOR.file.name, Timestamp.DESCRIPTOR.file.name))
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, text)
        message.enum_type.extend(_enums(name))
    return file


def _enums(message: str) -> Iterator[EnumDescriptorProto]:
    for name, values in ENUMS.items():
        if name.startswith(f"{message}."):
            enum = EnumDescriptorProto(name=name.partition(".")[2])
            for number, value in enumerate(values):
                enum.value.add(name=value, number=number)
            yield enum


def _add_field(message: DescriptorProto, text: str) -> None:
    oneof, _, rest = text.rpartition(": ")
    *kind, name, number = rest.split()
    field = message.field.add(name=name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
    if oneof:
        if not message.oneof_decl:
            message.oneof_decl.add(name=oneof)
        field.oneof_index = 0
    if kind[0] in ("repeated", "map"):
        field.label = FieldDescriptorProto.LABEL_REPEATED
    if kind[0] == "map":
        entry = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        _add_field(nested, "string key 1")
        _add_field(nested, f"{kind[1] if len(kind) > 1 else 'string'} value 2")
        kind = [f"{message.name}.{entry}"]
    _set_type(field, kind[-1])


def _set_type(field: FieldDescriptorProto, kind: str) -> None:
    scalar = f"TYPE_{kind.upper()}"
    if scalar in FieldDescriptorProto.Type.keys():  # noqa: SIM118 - no mapping
        field.type = FieldDescriptorProto.Type.Value(scalar)
        return
    field.type = FieldDescriptorProto.TYPE_ENUM if kind in ENUMS else FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{kind}" if kind.startswith("google.") else f".{PACKAGE}.{kind}"


def _classes() -> dict[str, Any]:
    pool = DescriptorPool()
    for known in (Duration, Timestamp):
        pool.AddSerializedFile(known.DESCRIPTOR.file.serialized_pb)
    file = _file()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in MESSAGES}
    return {name: GetMessageClass(descriptor) for name, descriptor in found.items()}


protos: Any = SimpleNamespace(**_classes())
"""The class of each message by its name, as Microsoft's worker library takes them."""
