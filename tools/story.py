"""Carry out the notebook examples/story.ipynb, and write down what its cells show.

``python -m tools.story`` (``make docs-story``) runs all cells in order, in a kernel of their own, and saves
the notebook with their outputs. A test compares these with what the cells show now.
"""

import copy
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "examples" / "story.ipynb"


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of its cells, which must not fail."""
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    options = {"timeout": 120, "record_timing": False, "coalesce_streams": True}
    done = NotebookClient(copy.deepcopy(notebook), resources=folder, **options).execute()
    for output in (output for cell in done.cells for output in cell.get("outputs", [])):
        if "text/html" in output.get("data", {}):
            del output.data["text/plain"]  # what nobody sees
    done.metadata.language_info = {"name": "python"}  # whichever version of Python it is
    return done


def main() -> None:
    """Write the outputs into the notebook."""
    nbformat.write(executed(nbformat.read(NOTEBOOK, as_version=4)), NOTEBOOK)
    print(NOTEBOOK.relative_to(ROOT), f"{NOTEBOOK.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
