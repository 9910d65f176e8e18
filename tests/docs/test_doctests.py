"""Every example in a docstring runs and prints what it shows."""

import doctest
import importlib
import pkgutil

import pytest

import shortlist

MODULES = ["shortlist"] + [
    module.name
    for module in pkgutil.walk_packages(shortlist.__path__, "shortlist.")
    if module.name != "shortlist.__main__"
    and not module.name.startswith("shortlist.adapters.")  # in tests/hosts, where their tools are
]


@pytest.mark.slow
def test_examples() -> None:
    outcomes = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}
    assert [name for name, outcome in outcomes.items() if outcome.failed] == []
    assert sum(outcome.attempted for outcome in outcomes.values()) >= 50


def test_the_main_doors_have_examples() -> None:
    for thing in (
        shortlist.Problem,
        shortlist.Session,
        shortlist.select,
        shortlist.simulate,
        shortlist.entropy,
    ):
        assert ">>>" in (thing.__doc__ or "")
