"""Write examples/drilling-sites.csv: 200 made-up drilling sites behind wireless links of known noise."""

import csv
from pathlib import Path

import numpy as np

N_SITES = 200
TARGET = Path(__file__).parent.parent / "examples" / "drilling-sites.csv"


def main() -> None:
    """Write the file; the same every time."""
    rng = np.random.default_rng(2022)
    # Gas content in per cent: most sites are poor, a few are rich. Link noise over three decades.
    means = np.round(2.0 + 3.0 * rng.gamma(2.0, 0.5, N_SITES), 3)
    scales = np.round(10.0 ** rng.uniform(-1.5, 1.5, N_SITES), 3)
    with TARGET.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "scale", "mean"])
        for number, (scale, mean) in enumerate(zip(scales, means, strict=True), start=1):
            writer.writerow([f"site {number:03d}", scale, mean])


if __name__ == "__main__":
    main()
