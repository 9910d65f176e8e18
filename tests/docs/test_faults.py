"""The list of planted faults stays in step with the sources."""

from pathlib import Path

import pytest
from tools.faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent.parent / "src" / "shortlist"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) == 1
    assert fault.new != fault.old


def test_there_are_enough_of_them_and_they_differ() -> None:
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS) >= 15
