"""The list of planted faults stays in step with the sources."""

from pathlib import Path

from tools.faults import FAULTS

ROOT = Path(__file__).parent.parent.parent / "src" / "shortlist"


def test_every_fault_can_be_planted() -> None:
    sources = {fault.file: (ROOT / fault.file).read_text(encoding="utf-8") for fault in FAULTS}
    assert [fault.what for fault in FAULTS if sources[fault.file].count(fault.old) != 1] == []
    assert [fault.what for fault in FAULTS if fault.new == fault.old] == []


def test_there_are_enough_of_them_and_they_differ() -> None:
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS) >= 15
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
