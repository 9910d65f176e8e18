"""The frame of every figure in a report: title, caption, and a table of its numbers."""

from collections.abc import Sequence

from shortlist.report import text_format as markup


def figure(title: str, drawing: str, said: str, table: str) -> str:
    """Return a figure element: title, picture, caption, and a table of its numbers."""
    return (
        f'<figure aria-label="{markup.words(title)}"><h3>{markup.words(title)}</h3>'
        f"<div>{drawing}</div><figcaption>{said}</figcaption>"
        f"<details><summary>The numbers</summary>{table}</details></figure>"
    )


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table. Headings are text and cells are HTML; the first cell of a row is its header.

    The caption is for screen readers; others see the heading above.
    """
    head = "".join(f'<th scope="col">{markup.words(one)}</th>' for one in headings)
    body = "".join(f"<tr>{_cells(*row)}</tr>" for row in rows)
    said = f'<caption class="unseen">{markup.words(caption)}</caption>'
    return f'<div class="wide"><table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(about: str, *numbers: str) -> str:
    return f'<th scope="row">{about}</th>' + "".join(f"<td>{cell}</td>" for cell in numbers)
