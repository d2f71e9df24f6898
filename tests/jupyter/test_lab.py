"""JupyterLab in a headless browser: notebooks run, the table, the pictures and the pinned display are seen."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from conftest import ROOT, TIMEOUT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]



@pytest.fixture
def lab(data_folder, tmp_path):
    """A JupyterLab server over a copy of the notebooks: its address."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
        *(f"--port={port}", "--ip=127.0.0.1", "--IdentityProvider.token=", f"--notebook-dir={tmp_path}"),
        "--LabApp.news_url=None",
    ]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(10 * TIMEOUT):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=1).read()
            break
        except OSError:
            time.sleep(0.1)
    yield address
    server.terminate()
    server.wait(timeout=TIMEOUT)


@contextlib.contextmanager
def ran(lab, path):
    """The page of a notebook after all of its cells have run."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing: install the system package chromium")
    from playwright.sync_api import sync_playwright

    notebook = nbformat.read(path, as_version=4)
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 6000})
        page.goto(f"{lab}/lab/tree/notebooks/{path.name}", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook", timeout=1000 * TIMEOUT)
        # Running before the kernel is there makes JupyterLab ask for one.
        page.wait_for_selector(".jp-KernelName:has-text('vramlab')", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=1000 * TIMEOUT)
        menu = page.get_by_role("menubar").get_by_role("menuitem", name="Run", exact=True)
        menu.click(timeout=1000 * TIMEOUT)
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click(timeout=1000 * TIMEOUT)
        # The last cell's prompt gets its number when everything above it has run.
        page.wait_for_selector(f".jp-InputPrompt:has-text('[{cells}]')", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=1000 * TIMEOUT)
        folder = os.environ.get("VRAMLAB_SCREENSHOTS")
        if folder:
            page.screenshot(path=f"{folder}/{path.stem}.png")
        yield page
        browser.close()


def errors(page):
    # JupyterLab shows an error's traceback by the renderer of standard error.
    outputs = page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']")
    return outputs.filter(has_text="error").count()


def test_the_first_notebook_shows_the_table_in_a_browser(lab):
    with ran(lab, ROOT / "notebooks" / "01_first_look.ipynb") as page:
        table = page.locator(".jp-OutputArea-output table").first.inner_text()
        assert "arrays" in table and "pool" in table
        assert errors(page) == 0


def test_maps_and_timelines_are_seen_in_a_browser(lab):
    with ran(lab, ROOT / "notebooks" / "02_modes_and_maps.ipynb") as page:
        pictures = page.locator(".jp-OutputArea-output svg[role=img]")
        assert pictures.count() >= 5
        for picture in pictures.all():
            box = picture.bounding_box()
            assert box["width"] > 500 and box["height"] > 40, "it is drawn, not cut off"
        titles = page.locator(".jp-OutputArea-output svg title").all_text_contents()
        assert any(title.startswith("x\n") for title in titles), "hovering names the owner"
        # One cell fails on purpose.
        assert errors(page) == 1


def test_a_pinned_display_follows_the_cells(lab, tmp_path):
    cells = ["%watch live", "let weights = zeros([2560, 1024]);", "let more = zeros([2560, 1024]);"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "vramlab", "display_name": "vramlab", "language": "rust"}
    path = tmp_path / "notebooks" / "pinned.ipynb"
    nbformat.write(notebook, path)
    with ran(lab, path) as page:
        pinned = page.locator(".jp-OutputArea-output svg[role=img]")
        assert pinned.count() == 1, "one display, below the cell that asked for it"
        titles = page.locator(".jp-OutputArea-output svg title").all_text_contents()
        assert any(title.startswith("more\n") for title in titles), "it shows the last cell's state"
        assert "20.0" in page.locator(".jp-OutputArea-output table").first.inner_text()
        assert errors(page) == 0
