"""Every formula has its line of code, every key its reference, and the map of them is up to date."""

import re
from pathlib import Path

import pytest
from tools.paper_map import KEY, TARGET, Place, build, main, places, references

import shortlist as sl
from shortlist.strategies import strategy_named

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src" / "shortlist").rglob("*.py"))

PAPER = [
    "Sec. 3, Ent",
    "Sec. 4, G_j",
    "Sec. 4, G^m",
    "Sec. 4, G^l",
    "Sec. 4, G^r",
    "Thm. 4.1, term I",
    "Thm. 4.1, term II",
    "Thm. 4.1, term III",
    "Sec. 5.1, WNElim",
    "Lemma 5.1",
    "Lemma 5.1, omega_i",
    "Sec. 5.1, max sigma_i^2",
    "Alg. 1, line 1",
    "Alg. 1, line 2",
    "Alg. 1, line 3",
    "Alg. 1, line 4",
    "Alg. 2, line 1",
    "Alg. 2, line 3",
    "Alg. 2, line 4",
    "Alg. 2, line 5",
    "Sec. 5.2, illustrative example",
    "Sec. 6.1, M or F",
    "Sec. 6.1, l",
    "Sec. 6.1, the rest",
    "Sec. 6.2, L",
    "App. C, h_l",
    "App. C, l*",
    "App. C, r",
    "Alg. 3, line 1",
    "Alg. 3, line 3",
    "Alg. 3, line 4",
]
"""What the paper defines on the side of its algorithms. Loop keywords and returns need no line."""


def is_at(place: Place, address: str) -> bool:
    """Whether a comment names this address: the same words, perhaps with a remark after them."""
    return place.key == "ZT22" and re.match(re.escape(address) + r"(?![\w^*])", place.address) is not None


def test_the_paper_is_implemented() -> None:
    found = places(ROOT)
    missing = [address for address in PAPER if not any(is_at(place, address) for place in found)]
    assert missing == [], "no line ends with # [ZT22] and one of these"


def test_the_map_is_up_to_date() -> None:
    written = (ROOT / TARGET).read_text(encoding="utf-8")
    assert written == build(ROOT), "run `make docs-map`"


def test_every_key_has_a_reference_and_every_reference_is_complete_and_used() -> None:
    used = {key: path for path in SOURCES for key in KEY.findall(path.read_text(encoding="utf-8"))}
    known = references(ROOT)
    assert {key: path for key, path in used.items() if key not in known} == {}, "add to docs/references.bib"
    assert known.keys() == used.keys()
    assert all(known.values())


def test_every_theorem_that_a_guarantee_cites_is_in_the_map() -> None:
    text, problem = build(ROOT), sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 5)
    table = re.findall(
        r"^\| ((?:Theorem|Lemma) \S+) \| \[`([\w-]+)`\]\(\S+\) \| (.*) \|$", text, flags=re.MULTILINE
    )
    assert {theorem for theorem, _, _ in table} == {"Theorem 5.3", "Lemma 5.1", "Lemma 5.2", "Lemma C.1"}
    assert all("](theory/" in where for _, _, where in table)
    for name in sl.strategies.names():
        promise = strategy_named(name).guarantee(problem)
        theorems = re.findall(r"\[ZT22\] ((?:Theorem|Lemma) [A-Z0-9.]+)", promise.source if promise else "")
        for theorem in theorems:
            assert name in [strategy for one, strategy, _ in table if one == theorem], (name, theorem)


def test_the_paper_comes_first_and_every_reference_names_its_authors() -> None:
    headings = re.findall(r"^## (\w+)\n\n(.*)\n", build(ROOT), flags=re.MULTILINE)
    first, *others = [key for key, _ in headings]
    assert first == "ZT22"
    assert others == sorted(others)
    assert all(re.fullmatch(r"[A-Z].* \(\d{4}\): [^{}$\\]+", reference) for _, reference in headings)
    assert dict(headings)["KTAS12"].startswith("Kalyanakrishnan, Tewari, Auer and Stone (2012): PAC Subset")


def test_every_link_of_the_map_leads_to_a_file() -> None:
    links = re.findall(r"\]\((\.\./[^)]+)\)", build(ROOT))
    assert len(links) > len(PAPER)
    assert all((ROOT / "docs" / link).is_file() for link in links)


# --- the tool itself, on a small source tree ----------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "shortlist" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "references.bib").write_text(
        "@article{AB12,\n  author = {B., A.},\n  title = {{On} $m$ {A}rms},\n  year = {2012},\n}\n"
    )
    (package / "__init__.py").write_text("x = 1  # [AB12] Eq. 10\n")
    (package / "one.py").write_text(
        "class Thing:\n"
        "    def method(self) -> int:\n"
        "        if True:\n"
        "            def nested() -> int:\n"
        "                return 1  # [AB12] Eq. 2: why\n"
        "        # [AB12] Eq. 2; on a line of its own\n"
        "        return 2  # [AB12] |R|\n"
        "    field = '# [AB12] Eq. 7'  # see [AB12] Eq. 8\n"
    )
    return tmp_path


def test_addresses_lead_to_the_innermost_symbol(tree: Path) -> None:
    found = [(place.address, place.symbol) for place in places(tree)]
    assert found == [
        ("Eq. 10", "shortlist.inner"),
        ("Eq. 2", "shortlist.inner.one.Thing.method.nested"),
        ("Eq. 2", "shortlist.inner.one.Thing.method"),
        ("|R|", "shortlist.inner.one.Thing.method"),
    ]


def test_the_map_is_sorted_as_people_count(tree: Path) -> None:
    text = build(tree)
    assert "## AB12\n\nB. (2012): On m Arms\n" in text
    assert text.index("`Eq. 2`") < text.index("`Eq. 10`") < text.index(r"`\|R\|`")
    assert "(../src/shortlist/inner/one.py)" in text


def test_writing_twice_changes_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.paper_map.ROOT", tree)
    main()
    first = (tree / TARGET).read_bytes()
    main()
    assert (tree / TARGET).read_bytes() == first == build(tree).encode()
