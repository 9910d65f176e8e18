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
    for cell in (cell for cell in done.cells if cell.cell_type == "code"):
        cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)  # what nobody sees
    done.metadata.language_info = {"name": "python"}  # whichever version of Python it is
    return done


def _is_progress(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is the progress of a run, which is empty at its end."""
    return bool(output.output_type == "display_data" and output.data.get("text/html") == "")


def main() -> None:
    """Write the outputs into the notebook."""
    nbformat.write(executed(nbformat.read(NOTEBOOK, as_version=4)), NOTEBOOK)
    print(NOTEBOOK.relative_to(ROOT), f"{NOTEBOOK.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
