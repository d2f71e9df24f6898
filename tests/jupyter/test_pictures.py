"""Pictures arrive as SVG with a page and a text beside; the pinned display is one and is updated."""

import xml.etree.ElementTree as tree

from conftest import of_kind

SVG = "{http://www.w3.org/2000/svg}"


def shown(kernel, cell):
    reply, messages = kernel.run(cell)
    assert reply["status"] == "ok"
    (display,) = of_kind(messages, "display_data")
    return display


def picture(data):
    root = tree.fromstring(data["image/svg+xml"])
    assert root.tag == f"{SVG}svg"
    assert "<svg" in data["text/html"], "hovering needs the picture in the page"
    assert data["text/plain"].strip()
    return root


def test_the_map_is_a_picture_whose_titles_name_the_owners(kernel):
    kernel.run("let weights = zeros([2560, 1024]);")
    data = shown(kernel, "%mem map")["data"]
    titles = [title.text for title in picture(data).iter(f"{SVG}title")]
    named = [title for title in titles if title.startswith("weights\n")]
    assert len(named) == 1 and "10485760 bytes" in named[0] and "at 0x" in named[0]
    assert "weights" in data["text/plain"] and "█" in data["text/plain"]


def test_the_timeline_and_fragmentation_are_pictures(kernel):
    kernel.run("{ let t = zeros([2560, 1024]); }")
    data = shown(kernel, "%mem timeline")["data"]
    texts = [text.text for text in picture(data).iter(f"{SVG}text")]
    assert any(text.startswith("within cell") for text in texts)
    assert any(text.startswith("peak ") for text in texts)
    data = shown(kernel, "%mem fragmentation")["data"]
    assert any(text.text == "100 %" for text in picture(data).iter(f"{SVG}text"))


def test_a_live_watch_is_one_display_that_is_updated(kernel):
    pinned = shown(kernel, "%watch live")
    name = pinned["transient"]["display_id"]
    _, messages = kernel.run("let more = zeros([2560, 1024]);")
    assert of_kind(messages, "display_data") == []
    (update,) = of_kind(messages, "update_display_data")
    assert update["transient"]["display_id"] == name
    assert "more" in update["data"]["text/html"] and "<svg" in update["data"]["text/html"]
    # Asked again, it is pinned again: below this cell.
    assert shown(kernel, "%watch live")["transient"]["display_id"] == name
    kernel.run("%watch brief")
    _, messages = kernel.run("drop(more);")
    assert len(of_kind(messages, "display_data")) == 1


def test_torch_statistics_are_asked_by_name(kernel):
    kernel.run("%mode caching")
    summary = shown(kernel, "%stats summary")["data"]["text/plain"]
    assert summary.startswith("|====") and "Allocated memory" in summary
    names = shown(kernel, "%stats torch")["data"]["text/plain"]
    assert "allocated_bytes.all.current" in names
    kernel.run("%mode preallocate")
