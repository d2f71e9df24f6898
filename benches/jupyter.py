"""Round trips of a trivial cell through Jupyter: vramlab beside ipykernel, interleaved.

Run with the Python of .venv after ./test: .venv/bin/python benches/jupyter.py [path of vramlab-kernel]
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from jupyter_client.manager import KernelManager

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNEL = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "release" / "vramlab-kernel"
ROUNDS = 300


def start(name):
    begin = time.perf_counter()
    manager = KernelManager(kernel_name=name)
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client, time.perf_counter() - begin


def round_trip(client):
    """From sending the request until both the reply and idle have come, in milliseconds."""
    begin = time.perf_counter()
    msg_id = client.execute("1 + 1")
    while True:
        message = client.get_iopub_msg(timeout=60)
        mine = message["parent_header"].get("msg_id") == msg_id
        if mine and message["content"].get("execution_state") == "idle":
            break
    while client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != msg_id:
        pass
    return 1e3 * (time.perf_counter() - begin)


def main():
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([KERNEL, "install", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        os.environ["JUPYTER_PATH"] = f"{prefix}/share/jupyter"
        kernels = {name: start(name) for name in ("vramlab", "python3")}
        times = {name: [] for name in kernels}
        for _ in range(ROUNDS):
            for name, (_, client, _) in kernels.items():
                times[name].append(round_trip(client))
        print(f"{'kernel':10} {'start s':>8} {'min ms':>8} {'median ms':>10}")
        for name, (manager, client, started) in kernels.items():
            least, middle = min(times[name]), statistics.median(times[name])
            print(f"{name:10} {started:8.2f} {least:8.2f} {middle:10.2f}")
            client.stop_channels()
            manager.shutdown_kernel(now=True)


main()
