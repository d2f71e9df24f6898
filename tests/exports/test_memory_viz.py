"""viz-protocol: the memory_viz export, read by Python's pickle and by PyTorch's own reader."""

import importlib.util
import os
import pickle
import pickletools
import re
import subprocess
import sys

import pytest

STATES = {"active_allocated", "active_pending_free", "inactive"}
ACTIONS = {
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
}


def test_viz_protocol_is_four_and_only_data(exports):
    opcodes = [opcode for opcode, _, _ in pickletools.genops((exports / "viz").read_bytes())]
    assert opcodes[0].name == "PROTO"
    assert max(opcode.proto for opcode in opcodes) == 4
    code = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
    assert not code & {opcode.name for opcode in opcodes}


def test_viz_protocol_blocks_tile_each_segment(exports):
    snapshot = pickle.loads((exports / "viz").read_bytes())
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            assert block["state"] in STATES
            assert block["requested_size"] <= block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        used = [b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"]
        assert segment["allocated_size"] == sum(used)
    names = {
        frame["name"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        for frame in block["frames"]
    }
    assert {"x", "z", "params[0]", "params[1]", "cell 1"} <= names
    (trace,) = snapshot["device_traces"]
    assert {event["action"] for event in trace} <= ACTIONS
    assert [e["size"] for e in trace if e["action"] == "oom"] == [400 << 20]
    times = [event["time_us"] for event in trace]
    assert times == sorted(times) and times[0] > 1_500_000_000_000_000
    assert set(snapshot["allocator_settings"]) >= {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size"}


@pytest.fixture
def viz(memory_viz, tmp_path):
    """Runs a subcommand of PyTorch's reader. Its flame graphs are drawn by a script of others that it would
    download; the one here hands through the lines that it is given."""
    script = tmp_path / ".cache" / "flamegraph.pl"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec cat\n")
    script.chmod(0o755)

    def run(*arguments):
        environment = {**os.environ, "HOME": str(tmp_path)}
        command = [sys.executable, memory_viz, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def live_bytes(snapshot):
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    return sum(b["requested_size"] for b in blocks if b["state"] == "active_allocated")


def test_viz_protocol_pytorch_prints_it(exports, viz):
    snapshot = pickle.loads((exports / "viz").read_bytes())
    stats = viz("stats", exports / "viz")
    assert f"segments: {len(snapshot['segments'])}" in stats
    allocated = float(re.search(r"total_allocated: ([\d.]+)MiB", stats)[1])
    assert abs(allocated - live_bytes(snapshot) / 2**20) < 0.06
    trace = viz("trace", exports / "viz")
    (events,) = snapshot["device_traces"]
    assert f"{len(events)} entries" in trace
    assert "raise OutOfMemoryError # 400.0MiB requested" in trace


@pytest.mark.parametrize("plot", [["trace_plot"], ["trace_plot", "-s"], ["segment_plot"]])
def test_viz_protocol_pytorch_plots_it(exports, viz, tmp_path, plot):
    page = tmp_path / "page.html"
    viz(*plot, exports / "viz", "-o", page)
    assert "add_local_files" in page.read_text()


@pytest.mark.parametrize("graph", ["segments", "memory"])
def test_viz_protocol_pytorch_groups_it_by_owner(exports, viz, tmp_path, graph):
    lines = tmp_path / "lines"
    viz(graph, exports / "viz", "-o", lines)
    text = lines.read_text()
    assert re.search(r"cell 1:1:cell 1;cell 1:1:x \d+", text), text
    snapshot = pickle.loads((exports / "viz").read_bytes())
    if graph == "memory":
        active = [line for line in text.splitlines() if ";active" in f";{line}"]
        sizes = [int(line.rsplit(" ", 1)[1]) for line in active]
        assert sum(sizes) == live_bytes(snapshot), text


def test_viz_protocol_pytorch_compares_it(exports, memory_viz, viz, tmp_path, monkeypatch, capsys):
    """Its `compare` takes lists of segments; its own command line hands it whole snapshots and fails on any."""
    spec = importlib.util.spec_from_file_location("memory_viz", memory_viz)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("HOME", str(tmp_path))
    segments = pickle.loads((exports / "viz").read_bytes())["segments"]
    assert module.compare(segments, segments) == ""
    assert "only_before = []" in capsys.readouterr().out
    fewer = module.compare(segments, segments[1:])
    assert fewer.startswith("only_before;"), fewer
