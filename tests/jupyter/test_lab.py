"""JupyterLab in a headless browser runs the first notebook and shows the memory table."""

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


NOTEBOOK = nbformat.read(ROOT / "notebooks" / "01_first_look.ipynb", as_version=4)
CELLS = sum(cell.cell_type == "code" for cell in NOTEBOOK.cells)


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


def test_the_first_notebook_shows_the_table_in_a_browser(lab):
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing: install the system package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 4000})
        page.goto(f"{lab}/lab/tree/notebooks/01_first_look.ipynb", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook", timeout=1000 * TIMEOUT)
        # Running before the kernel is there makes JupyterLab ask for one.
        page.wait_for_selector(".jp-KernelName:has-text('vramlab')", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=1000 * TIMEOUT)
        menu = page.get_by_role("menubar").get_by_role("menuitem", name="Run", exact=True)
        menu.click(timeout=1000 * TIMEOUT)
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click(timeout=1000 * TIMEOUT)
        # The last cell's prompt gets its number when everything above it has run.
        page.wait_for_selector(f".jp-InputPrompt:has-text('[{CELLS}]')", timeout=1000 * TIMEOUT)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=1000 * TIMEOUT)
        table = page.locator(".jp-OutputArea-output table").first.inner_text()
        errors = page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']")
        failed = errors.count()
        screenshot = os.environ.get("VRAMLAB_SCREENSHOT")
        if screenshot:
            page.screenshot(path=screenshot)
        browser.close()
    assert "arrays" in table and "pool" in table
    assert failed == 0
