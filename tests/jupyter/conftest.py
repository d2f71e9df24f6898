"""A private Jupyter data folder with our kernel in it, and a started kernel per module."""

import os
import pathlib
import subprocess

import pytest
from jupyter_client.manager import KernelManager

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = pathlib.Path(
    os.environ.get("VRAMLAB_KERNEL", ROOT / "target" / "debug" / "vramlab-kernel")
)
TIMEOUT = 60


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """Where `vramlab-kernel install` wrote the spec; the environment points there."""
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run([KERNEL, "install", "--prefix", prefix], check=True)
    folder = prefix / "share" / "jupyter"
    os.environ["JUPYTER_PATH"] = str(folder)
    return folder


class Conversation:
    """A client that checks busy and idle around each request and loses no message."""

    def __init__(self, manager):
        self.manager = manager
        self.client = manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def until_idle(self, msg_id):
        """Every iopub message of one request, between its busy and its idle."""
        messages = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            messages.append(message)
            if message["content"].get("execution_state") == "idle":
                break
        assert messages[0]["content"] == {"execution_state": "busy"}
        return messages[1:-1]

    def run(self, code, **options):
        """Executes a cell: (reply content, iopub messages)."""
        msg_id = self.client.execute(code, **options)
        messages = self.until_idle(msg_id)
        return self.reply(msg_id)["content"], messages

    def reply(self, msg_id):
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == msg_id:
                return reply

    def ask(self, kind, content):
        """A shell request that is no cell: the reply's content."""
        message = self.client.session.msg(kind, content)
        self.client.shell_channel.send(message)
        self.until_idle(message["header"]["msg_id"])
        reply = self.reply(message["header"]["msg_id"])
        assert reply["msg_type"] == kind.replace("_request", "_reply")
        return reply["content"]


def text_of(messages, kind="stream"):
    return "".join(m["content"]["text"] for m in messages if m["msg_type"] == kind)


def of_kind(messages, kind):
    return [m["content"] for m in messages if m["msg_type"] == kind]


@pytest.fixture(scope="module")
def kernel(data_folder):
    manager = KernelManager(kernel_name="vramlab")
    manager.start_kernel()
    conversation = Conversation(manager)
    yield conversation
    conversation.client.stop_channels()
    manager.shutdown_kernel(now=True)
