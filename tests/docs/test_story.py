"""The notebook tells its story: its cells run in order, and show what is saved in it."""

from typing import Any

import nbformat
import pytest
from tools.story import NOTEBOOK, executed

from tests.docs.test_links import broken

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def shown(notebook: nbformat.NotebookNode) -> list[Any]:
    """Return what each cell of code shows; of pictures only that they are there, since fonts differ."""
    return [
        [
            output.get("text")
            or [(kind, kind != "image/png" and text) for kind, text in sorted(output.data.items())]
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_cells_show_what_is_saved(saved: nbformat.NotebookNode) -> None:
    assert shown(executed(saved)) == shown(saved), "run `make docs-story`"


def test_it_shows_a_plan_a_result_certificates_and_pictures(saved: nbformat.NotebookNode) -> None:
    nbformat.validate(saved)
    code = "\n".join(cell.source for cell in saved.cells if cell.cell_type == "code")
    assert all(
        word in code for word in ("sl.plan(", "sl.select(", "session.certified", "sl.certify(", "items=")
    )
    assert str(shown(saved)).count("image/png") == 2
    assert [cell.execution_count for cell in saved.cells if cell.cell_type == "code"] == list(
        range(1, len(shown(saved)) + 1)
    )
    assert NOTEBOOK.stat().st_size < 200_000


def test_its_links_lead_somewhere(saved: nbformat.NotebookNode, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n\n".join(cell.source for cell in saved.cells if cell.cell_type == "markdown")
    assert text.count("](../docs/") >= 5
    monkeypatch.setattr(
        "tests.docs.test_links.prose", lambda path: text if path == NOTEBOOK else path.read_text()
    )
    assert broken(NOTEBOOK) == []
