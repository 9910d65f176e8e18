"""Compare all transcripts with those that are recorded, or record them anew with `--write`."""

import json
import sys

from tests.transcripts import deliveries  # noqa: F401  (it adds its own)
from tests.transcripts.transcript import RECORDED, TRANSCRIPTS, compare

if "--write" in sys.argv:
    lines = [f"{json.dumps(name)}: {json.dumps(run())}" for name, run in sorted(TRANSCRIPTS.items())]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.exit(print(f"{len(lines)} transcripts"))
differs = compare()
for name in differs:
    print("differs:", name)
sys.exit(1 if differs else 0)
