"""The profile, read by the protobuf runtime with pprof's field numbers."""

import csv
import gzip
import json

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# profile.proto as far as it is used: message, field, number, type, repeated.
NUMBER, TEXT, MESSAGE = 3, 9, 11
FIELDS = [
    ("Profile", "sample_type", 1, "ValueType", True),
    ("Profile", "sample", 2, "Sample", True),
    ("Profile", "location", 4, "Location", True),
    ("Profile", "function", 5, "Function", True),
    ("Profile", "string_table", 6, TEXT, True),
    ("Profile", "time_nanos", 9, NUMBER, False),
    ("Profile", "default_sample_type", 14, NUMBER, False),
    ("ValueType", "type", 1, NUMBER, False),
    ("ValueType", "unit", 2, NUMBER, False),
    ("Sample", "location_id", 1, NUMBER, True),
    ("Sample", "value", 2, NUMBER, True),
    ("Sample", "label", 3, "Label", True),
    ("Label", "key", 1, NUMBER, False),
    ("Label", "str", 2, NUMBER, False),
    ("Location", "id", 1, NUMBER, False),
    ("Location", "line", 4, "Line", True),
    ("Line", "function_id", 1, NUMBER, False),
    ("Line", "line", 2, NUMBER, False),
    ("Function", "id", 1, NUMBER, False),
    ("Function", "name", 2, NUMBER, False),
    ("Function", "filename", 4, NUMBER, False),
]


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    messages = {}
    for message, name, number, kind, repeated in FIELDS:
        if message not in messages:
            messages[message] = file.message_type.add(name=message)
        field = messages[message].field.add(name=name, number=number)
        field.label = 3 if repeated else 1
        field.type = kind if isinstance(kind, int) else MESSAGE
        if isinstance(kind, str):
            field.type_name = f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


@pytest.fixture
def profile(exports):
    read = profile_class()()
    read.ParseFromString(gzip.decompress((exports / "pprof").read_bytes()))
    return read


def test_types_and_labels_are_those_of_jax(profile):
    text = profile.string_table
    assert text[0] == ""
    kinds = [(text[kind.type], text[kind.unit]) for kind in profile.sample_type]
    assert kinds == [("allocations", "count"), ("space", "bytes")]
    assert text[profile.default_sample_type] == "space"
    assert profile.time_nanos > 1_500_000_000 * 10**9
    labels = [{text[l.key]: text[l.str] for l in sample.label} for sample in profile.sample]
    assert {label["kind"] for label in labels} == {"buffer", "executable"}
    assert {label["device"] for label in labels} == {"cpu"}


def test_every_reference_is_answered_and_owners_are_functions(profile):
    text = profile.string_table
    functions = {function.id: function for function in profile.function}
    locations = {location.id: location for location in profile.location}
    assert 0 not in functions and 0 not in locations
    stacks = {}
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        lines = [locations[at].line[0] for at in sample.location_id]
        names = [(text[functions[l.function_id].name], l.line) for l in lines]
        stacks[tuple(names)] = tuple(sample.value)
    assert stacks[(("x", 1), ("cell 1", 1))] == (1, 4 << 20)
    assert stacks[(("params[0]", 2), ("cell 1", 2))] == (1, 256 * 256 * 4)


def test_the_buffers_are_what_the_events_leave(profile, exports):
    text = profile.string_table
    kind = list(text).index("buffer")
    buffers = [s for s in profile.sample if any(label.str == kind for label in s.label)]
    with open(exports / "csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(sample.value[1] for sample in buffers) == int(rows[-1]["arrays_bytes"])
    allocs = sum(row["kind"] == "alloc" for row in rows)
    frees = sum(row["kind"] == "free" for row in rows)
    assert sum(sample.value[0] for sample in buffers) == allocs - frees


def test_the_chrome_trace_is_json_with_a_slice_for_each_cell(exports):
    trace = json.loads((exports / "perfetto").read_text())
    cells = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert cells == [f"cell {n}" for n in range(1, 6)]
