"""Conversations: send, busy, input, result, idle, reply; nothing unclaimed."""

import subprocess
import time

import pytest
from conftest import KERNEL, TIMEOUT, Conversation, of_kind, text_of
from jupyter_client.manager import KernelManager


def kinds(messages):
    return [m["msg_type"] for m in messages]


def test_a_cell_is_echoed_answered_and_counted(kernel):
    reply, messages = kernel.run("1 + 1")
    assert reply["status"] == "ok"
    assert kinds(messages)[:2] == ["execute_input", "execute_result"]
    result = of_kind(messages, "execute_result")[0]
    assert result["data"]["text/plain"] == "2"
    assert result["execution_count"] == reply["execution_count"]
    again, _ = kernel.run("2")
    assert again["execution_count"] == reply["execution_count"] + 1


def test_milestone_a_zeros_add_jit_and_the_table(kernel):
    reply, messages = kernel.run(
        "let a = zeros([1024, 256]);\nlet f = jit(|[x]| x + 1.0);\nlet b = f([&a]);\nprintln!(\"{}\", b.sum().item());"
    )
    assert reply["status"] == "ok", reply
    assert text_of(messages) == "262144\n"
    tables = of_kind(messages, "display_data")
    assert len(tables) == 1
    assert "<table" in tables[0]["data"]["text/html"]
    assert "arrays" in tables[0]["data"]["text/plain"]
    assert "2.0" in tables[0]["data"]["text/plain"]


def test_streams_stay_in_order_and_a_flood_arrives_whole(kernel):
    _, messages = kernel.run('for i in 0..20000 { println!("{i}"); }\neprintln!("end");')
    out = "".join(m["text"] for m in of_kind(messages, "stream") if m["name"] == "stdout")
    assert out == "".join(f"{i}\n" for i in range(20000))
    assert [m["text"] for m in of_kind(messages, "stream") if m["name"] == "stderr"] == ["end\n"]
    assert len(of_kind(messages, "stream")) < 2000


def test_a_wrong_cell_is_an_error_and_nothing_is_lost(kernel):
    kernel.run("let kept = ones([3]);")
    reply, messages = kernel.run("kept.tahn()")
    assert reply["status"] == "error"
    error = of_kind(messages, "error")[0]
    assert error["ename"] == "E0599"
    assert "tanh" in "\n".join(error["traceback"])
    assert reply["traceback"] == error["traceback"]
    reply, messages = kernel.run("kept.sum().item()")
    assert of_kind(messages, "execute_result")[0]["data"]["text/plain"].startswith("3")


def test_shape_faults_name_op_and_shapes(kernel):
    reply, _ = kernel.run("ones([2, 3]).dot(&ones([2, 3]))")
    assert reply["status"] == "error"
    text = "\n".join(reply["traceback"])
    assert "dot" in text and "[2,3]" in text.replace(" ", "")


def test_cells_behind_a_failure_are_aborted(kernel):
    first = kernel.client.execute("sleep(0.3); assert!(false);")
    second = kernel.client.execute("1")
    assert kernel.reply(first)["content"]["status"] == "error"
    assert kernel.reply(second)["content"]["status"] == "aborted"
    reply, _ = kernel.run("1")
    assert reply["status"] == "ok"


def test_without_stop_on_error_the_next_cell_runs(kernel):
    first = kernel.client.execute("sleep(0.2); assert!(false);", stop_on_error=False)
    second = kernel.client.execute("1")
    assert kernel.reply(first)["content"]["status"] == "error"
    assert kernel.reply(second)["content"]["status"] == "ok"


def test_silent_cells_say_nothing(kernel):
    reply, messages = kernel.run('println!("x");', silent=True)
    assert reply["status"] == "ok"
    assert messages == []


def test_interrupt_by_message_stops_a_loop_and_keeps_state(kernel):
    kernel.run("let before = 7;")
    msg_id = kernel.client.execute("let mut n = 0i64; loop { n = (n + 1) % 1000; }")
    time.sleep(0.5)
    kernel.manager.interrupt_kernel()
    kernel.until_idle(msg_id)
    reply = kernel.reply(msg_id)["content"]
    assert reply["status"] == "error"
    assert reply["ename"] == "interrupted"
    _, messages = kernel.run("before")
    assert of_kind(messages, "execute_result")[0]["data"]["text/plain"] == "7"


def test_input_asks_the_client(kernel):
    msg_id = kernel.client.execute('let name = input("who? "); println!("hello {name}");', allow_stdin=True)
    asked = kernel.client.get_stdin_msg(timeout=TIMEOUT)
    assert asked["content"]["prompt"] == "who? "
    kernel.client.input("µ")
    messages = kernel.until_idle(msg_id)
    assert kernel.reply(msg_id)["content"]["status"] == "ok"
    assert text_of(messages) == "hello µ\n"


def test_input_without_a_client_that_can_answer_is_a_fault(kernel):
    reply, _ = kernel.run('input("who? ")', allow_stdin=False)
    assert reply["status"] == "error"


def test_completion_by_receiver_and_by_name(kernel):
    kernel.run("let µarr = ones([3]);")
    reply = kernel.ask("complete_request", {"code": "µarr.tan", "cursor_pos": 8})
    assert "tanh" in reply["matches"]
    assert (reply["cursor_start"], reply["cursor_end"]) == (5, 8)
    reply = kernel.ask("complete_request", {"code": "%mo", "cursor_pos": 3})
    assert any("mode" in match for match in reply["matches"])


def test_inspection_shows_signature_and_words(kernel):
    reply = kernel.ask("inspect_request", {"code": "tanh", "cursor_pos": 2, "detail_level": 0})
    assert reply["found"]
    assert "fn tanh" in reply["data"]["text/plain"]
    reply = kernel.ask("inspect_request", {"code": "nothing_of_that_name", "cursor_pos": 2})
    assert reply["found"] is False


@pytest.mark.parametrize(
    "code, status",
    [("1 + 1", "complete"), ("let f = |x| {", "incomplete"), ("let = ;)", "invalid"), ("%mode", "complete")],
)
def test_is_complete(kernel, code, status):
    assert kernel.ask("is_complete_request", {"code": code})["status"] == status


def test_history_has_what_was_run(kernel):
    kernel.run("let in_history = 1;")
    reply = kernel.ask("history_request", {"hist_access_type": "tail", "n": 1, "output": False, "raw": True})
    assert reply["history"][-1][2] == "let in_history = 1;"


def test_comms_are_none_and_opening_one_closes_it(kernel):
    assert kernel.ask("comm_info_request", {}) == {"status": "ok", "comms": {}}
    message = kernel.client.session.msg("comm_open", {"comm_id": "c", "target_name": "t", "data": {}})
    kernel.client.shell_channel.send(message)
    messages = kernel.until_idle(message["header"]["msg_id"])
    assert of_kind(messages, "comm_close") == [{"comm_id": "c", "data": {}}]


def test_an_unknown_request_and_a_content_without_code_are_refused_not_lost(kernel):
    assert kernel.ask("nonsense_request", {})["status"] == "error"
    assert kernel.ask("complete_request", {"cursor_pos": 1})["status"] == "error"
    reply, _ = kernel.run("1")
    assert reply["status"] == "ok"


def test_malformed_content_gets_an_error_reply_with_its_parent(kernel):
    session = kernel.client.session
    message = session.msg("execute_request", {"code": "1"})
    frames = session.serialize(message)
    parts = [*frames[2:5], b"{this is not json"]
    frames = [frames[0], session.sign(parts), *parts]
    kernel.client.shell_channel.socket.send_multipart(frames)
    kernel.until_idle(message["header"]["msg_id"])
    assert kernel.reply(message["header"]["msg_id"])["content"]["status"] == "error"


def test_rubbish_on_the_socket_is_dropped(kernel):
    socket = kernel.client.shell_channel.socket
    socket.send_multipart([b"no delimiter"])
    socket.send_multipart([b"<IDS|MSG>", b"bad signature", b"{}", b"{}", b"{}", b"{}"])
    reply, _ = kernel.run("1")
    assert reply["status"] == "ok"


def test_control_answers_while_a_cell_runs(kernel):
    msg_id = kernel.client.execute("sleep(1.0);")
    time.sleep(0.2)
    begin = time.monotonic()
    control = kernel.client.control_channel
    message = kernel.client.session.msg("kernel_info_request", {})
    control.send(message)
    assert control.get_msg(timeout=TIMEOUT)["content"]["status"] == "ok"
    assert time.monotonic() - begin < 0.7
    kernel.until_idle(msg_id)
    kernel.reply(msg_id)


def test_live_watch_pins_one_display_and_updates_it(kernel):
    _, asked = kernel.run("%watch live")
    _, first = kernel.run("let w1 = ones([4]);")
    _, second = kernel.run("let w2 = ones([4]);")
    kernel.run("%watch brief")
    made = of_kind(asked, "display_data")
    assert len(made) == 1, "it stands below the cell that asked for it"
    for later in (first, second):
        updated = of_kind(later, "update_display_data")
        assert len(updated) == 1 and updated[0]["transient"] == made[0]["transient"]
        assert of_kind(later, "display_data") == []


def test_kernel_info_names_the_language(kernel):
    info = kernel.ask("kernel_info_request", {})
    assert info["language_info"]["name"] == "rust"
    assert info["protocol_version"].startswith("5.")


def test_a_reader_that_never_reads_does_not_freeze_the_others(kernel, data_folder):
    import zmq

    info = kernel.client.get_connection_info()
    sleeper = zmq.Context.instance().socket(zmq.SUB)
    sleeper.setsockopt(zmq.RCVHWM, 1)
    sleeper.setsockopt(zmq.SUBSCRIBE, b"")
    sleeper.connect(f"tcp://{info['ip']}:{info['iopub_port']}")
    time.sleep(0.2)
    try:
        for _ in range(20):
            reply, _ = kernel.run('for i in 0..2000 { println!("some text that is a line {i}"); }')
            assert reply["status"] == "ok"
    finally:
        sleeper.close(linger=0)


def test_shutdown_replies_and_the_last_output_is_not_lost(data_folder):
    manager = KernelManager(kernel_name="vramlab")
    manager.start_kernel()
    conversation = Conversation(manager)
    msg_id = conversation.client.execute('println!("last words");')
    message = conversation.client.session.msg("shutdown_request", {"restart": False})
    conversation.reply(msg_id)
    conversation.client.control_channel.send(message)
    reply = conversation.client.control_channel.get_msg(timeout=TIMEOUT)
    assert reply["content"] == {"status": "ok", "restart": False}
    assert "last words" in text_of(conversation.until_idle(msg_id))
    for _ in range(100):
        if not manager.is_alive():
            break
        time.sleep(0.05)
    assert not manager.is_alive()
    conversation.client.stop_channels()


def test_a_connection_file_that_is_none_is_a_plain_error(tmp_path):
    for text in ["", "not json", "{}", '{"shell_port": 1}']:
        path = tmp_path / "connection.json"
        path.write_text(text)
        run = subprocess.run([KERNEL, "run", path], capture_output=True, text=True, timeout=TIMEOUT)
        assert run.returncode == 1
        assert "connection file" in run.stderr and "panicked" not in run.stderr
    run = subprocess.run([KERNEL, "run", tmp_path / "absent"], capture_output=True, text=True)
    assert run.returncode == 1 and "absent" in run.stderr


def test_two_kernels_side_by_side(data_folder):
    managers = [KernelManager(kernel_name="vramlab") for _ in range(2)]
    for manager in managers:
        manager.start_kernel()
    conversations = [Conversation(manager) for manager in managers]
    conversations[0].run("let only_here = 1;")
    reply, _ = conversations[1].run("only_here")
    assert reply["status"] == "error" and reply["ename"] == "E0425"
    for conversation in conversations:
        conversation.client.stop_channels()
        conversation.manager.shutdown_kernel(now=True)


def test_jupyter_console_runs_a_cell(data_folder):
    import os
    import sys

    run = subprocess.run(
        [sys.executable, "-m", "jupyter_console", "--kernel", "vramlab", "--simple-prompt"],
        input="21 * 2\nexit\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert "42" in run.stdout, run.stdout + run.stderr
