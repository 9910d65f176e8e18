"""Take the picture of the README and of the site's home page: a report, as a browser shows it.

``python -m tools.picture`` carries out the README's own program, and puts the upper part of the report on its
result into docs/figures/report.png. It needs Chromium.
"""

import contextlib
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from shortlist.report.model import report_of_result
from shortlist.report.page import page

ROOT = Path(__file__).parent.parent
TARGET = Path("docs") / "figures" / "report.png"
WIDTH, TOP, HEIGHT, COLOURS = 1000, 32, 658, 128
DENSE = """
.shortlist h1 { font-size: 1.75rem }
.shortlist h2 { display: none }
.shortlist section { border: 0; margin-top: 0; padding-top: 0 }
.shortlist p { max-width: none }
"""


def report() -> str:
    """Return the report on what the program of the README finds."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = {}
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()):
        exec(program, found)
    return page(report_of_result(found["result"]))


def taken(text: str) -> bytes:
    """Return the upper part of a page as a PNG."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": TOP + HEIGHT}, device_scale_factor=2)
        tab.goto(file.as_uri())
        tab.add_style_tag(content=DENSE)
        found = tab.screenshot(clip={"x": 0, "y": TOP, "width": WIDTH, "height": HEIGHT})
        browser.close()
    return found


def main() -> None:
    """Write the picture, with few colours, so that it is small."""
    picture = Image.open(io.BytesIO(taken(report()))).convert("RGB")
    few = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(ROOT / TARGET, optimize=True)
    print(TARGET, f"{(ROOT / TARGET).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
