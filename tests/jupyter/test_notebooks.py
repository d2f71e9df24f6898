"""Every notebook runs from top to bottom; its cells assert its figures themselves."""

import nbformat
import pytest
from conftest import ROOT, TIMEOUT
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, data_folder):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "vramlab"
    sources = "\n".join(cell.source for cell in notebook.cells)
    assert "assert" in sources or "%expect" in sources, "a notebook asserts its figures"
    NotebookClient(notebook, timeout=TIMEOUT, kernel_name="vramlab").execute()


def test_a_wrong_figure_fails_the_notebook(data_folder):
    """The assertions above can fail: a notebook with a wrong one does."""
    cells = [nbformat.v4.new_code_cell("let a = zeros([1024, 1024]);\n%expect peak<=1MiB")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, timeout=TIMEOUT, kernel_name="vramlab").execute()
