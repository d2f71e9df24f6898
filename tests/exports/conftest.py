"""One session exported in every format, and PyTorch's own reader of memory snapshots."""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("VRAMLAB", ROOT / "target" / "debug" / "vramlab"))

# The reader is one Python file of the wheel, and imports nothing else of it. No wheel of torch is smaller than
# this platform's (75 MB), and it is read here, not installed.
TORCH = "torch==2.9.1"
PLATFORM = ["--platform", "macosx_11_0_arm64", "--python-version", "3.12", "--only-binary=:all:"]
MEMBER = "torch/cuda/_memory_viz.py"

SESSION = """\
let x = randn([1024, 1024]);
let params = vec![zeros([256, 256]), ones([512, 512])];
// %%
fn seven(x: &Array) -> Array { tanh(exp(sin(abs(cos(sqrt(abs(x))))))) }
let y = seven(&x);
let f = jit(|[x]| seven(x));
let z = f([&x]);
// %%
zeros([400, 1024, 256]);
// %%
%mode MODE
for n in 1..20 { let row = zeros([n, 5000]); row.sum(); }
drop(y);
// %%
x.sum().item()
"""

FORMATS = ["pprof", "viz", "perfetto", "csv", "trace"]


@pytest.fixture(scope="module", params=["caching", "platform", "vmm"])
def exports(request, tmp_path_factory):
    """The folder with one file a format, by the format's name."""
    folder = tmp_path_factory.mktemp(request.param)
    cells = folder / "session.rs"
    cells.write_text(SESSION.replace("MODE", request.param))
    options = [f"--export={name}={folder / name}" for name in FORMATS]
    command = [PROGRAM, "run", "--keep-going", "--capacity", "256MiB", *options, cells]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, "one cell runs out of memory: " + done.stderr
    return folder


def fetch(target):
    """Takes the one file out of a wheel that pip downloads."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", *PLATFORM, "-d", folder, TORCH], check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        part = target.with_suffix(".part")
        part.write_bytes(zipfile.ZipFile(wheel).read(MEMBER))
        part.rename(target)


@pytest.fixture(scope="session")
def memory_viz():
    """PyTorch's `_memory_viz.py`, kept beside the other Python packages."""
    target = ROOT / ".venv" / "memory_viz" / TORCH / "_memory_viz.py"
    if not target.exists():
        try:
            fetch(target)
        except (OSError, subprocess.CalledProcessError, KeyError) as why:
            words = f"PyTorch's reader could not be had from the wheel of {TORCH}: {why}"
            if os.environ.get("CI") == "true":
                pytest.fail(words)
            pytest.skip(words)
    return target
