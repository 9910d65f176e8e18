"""A report as a single HTML file, without network access or scripts."""

import platform
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files

from shortlist.report import text_format as markup
from shortlist.report.arm_counts_figure import rounds_figure, spread_figures
from shortlist.report.arms_figure import arms_figure
from shortlist.report.bounds_figure import bounds_figure
from shortlist.report.citations import bibtex
from shortlist.report.figure import table
from shortlist.report.model import Report
from shortlist.report.provenance_text import provenance, reproduction
from shortlist.report.text_format import counted, percent, universal
from shortlist.report.verdict import (
    LABELS,
    MOST_NAMED,
    assumption,
    basis,
    certificate,
    effort,
    headline,
    healthy_words,
    kept_word,
    names_arms,
    optimality,
    standing,
)
from shortlist.report.worker_text import worker_words

_SHORT_REASON, _LONG_REASON = 500, 10_000  # characters
_MOST_LISTED, _MOST_WORKERS, _MOST_SHARES = 200, 20, 40
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_PAGE_STYLE = (
    "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#14171b}}"
    "@media print{html{background:#fff}}body{margin:0}@page{margin:16mm}"
)
"""Style of the whole page, beside that of the report in it."""


def page(report: Report) -> str:
    """Return the HTML file."""
    title = markup.words(f"{_title(report)}: {headline(report)}")
    is_urgent = any(one.is_warning for one in report.findings)
    parts = [
        _top(report),
        _health(report) if is_urgent else "",
        _arms(report),
        _effort(report),
        _guarantee(report),
        "" if is_urgent else _health(report),
        _workers(report),
        _provenance(report),
        _references(report),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="Shortlist {version("shortlist")}">\n'
        f"<title>{title}</title>\n<style>{_PAGE_STYLE}{style()}</style>\n</head>\n"
        f'<body class="shortlist">\n<main>\n{"".join(parts)}</main>\n</body>\n</html>\n'
    )


@lru_cache(maxsize=1)
def style() -> str:
    """Return the CSS rules for elements of class `shortlist`."""
    return (files("shortlist.report") / "report.css").read_text(encoding="utf-8")


def verdict_html(report: Report, level: str = "h1") -> str:
    """Return the verdict with the names of a few arms, and the certificate."""
    mark = "✓" if report.state == "certified" else "!"
    return (
        f'<p class="state {report.state}">{mark} {LABELS[report.state]}</p>'
        f"<{level}>{markup.words(headline(report))}{_named(report)}</{level}>"
        f'<p class="lead">{markup.words(certificate(report))}</p>'
    )


def _named(report: Report) -> str:
    result = report.result
    if not names_arms(report):
        return ""
    names = [markup.name(result.problem.name(int(arm))) for arm in result.indices[:MOST_NAMED]]
    more = len(result.indices) - len(names)
    return ": " + ", ".join(names) + (f" and {more:,} more" if more else "")


def _title(report: Report) -> str:
    return "Shortlist" if report.origin is None else markup.shortened(report.origin.run, 60)


def _top(report: Report) -> str:
    run = "" if report.origin is None else f" of run {markup.name(report.origin.run, 60)}"
    said = f'<p class="kicker">Shortlist report{run}, {universal(report.made_at)}</p>'
    said += verdict_html(report)
    said += f"<p>{markup.words(assumption(report))}</p>" if report.promise is not None else ""
    spent = filter(None, [effort(report), standing(report), optimality(report)])
    said += f"<p>{markup.words(' '.join(spent))}</p>"
    if report.suspended and not report.is_finished:
        said += f"<p>Why it stopped:</p>{_reason(report.suspended)}"
    if report.resume:
        said += f"<p>To resume:</p><pre>{markup.words(report.resume)}</pre>"
    return f"<header>{said}</header>\n"


def _reason(text: str) -> str:
    """Return why a run stopped: in short and, if that is not everything, in full."""
    said = _lines(markup.shortened(text, _SHORT_REASON))
    if len(text) <= _SHORT_REASON:
        return f"<pre>{said}</pre>"
    whole = _lines(markup.shortened(text, _LONG_REASON))
    return f"<pre class='brief'>{said}</pre><details><summary>Full text</summary><pre>{whole}</pre></details>"


def _section(heading: str, body: str) -> str:
    return f"<section><h2>{heading}</h2>{body}</section>\n" if body else ""


def _guarantee(report: Report) -> str:
    promise = report.promise
    if promise is None:
        return ""
    rows = [[markup.words(share.event), f"{share.delta:.3g}"] for share in promise.ledger.shares]
    left = len(rows) - _MOST_SHARES
    if left > 0:
        rest = sum(share.delta for share in promise.ledger.shares[_MOST_SHARES:])
        rows = [*rows[:_MOST_SHARES], [f"{left:,} more", f"{rest:.3g}"]]
    rows.append(["<b>total, of the accepted delta</b>", _total(report)])
    ledger = table("Events on which delta is spent", ["event", "probability at most"], rows)
    return _section(
        "Basis of the guarantee",
        f"<p>{markup.words(basis(report))}</p><p class='soft'>The failure probability delta is divided "
        f"among these events. If none of them occurs, the statement above is true.</p>{ledger}",
    )


def _total(report: Report) -> str:
    promise = report.promise
    assert promise is not None
    return f"<b>{promise.ledger.total:.3g} of {promise.delta:g}</b>"


def _arms(report: Report) -> str:
    return _section("The arms", _listed(report) + arms_figure(report) + _pair(spread_figures(report)))


def _listed(report: Report) -> str:
    """Return the names of all selected arms; if there are very many, the first ones."""
    result = report.result
    if not report.is_finished or (names_arms(report) and len(result.indices) <= MOST_NAMED):
        return ""
    names = [markup.name(result.problem.name(int(arm))) for arm in result.indices[:_MOST_LISTED]]
    more = len(result.indices) - len(names)
    note = f" <code>shortlist report --json</code> lists the other {more:,}." if more else ""
    items = "".join(f"<li>{name}</li>" for name in names)
    order = ", by decreasing observed mean" if result.n_pulls else ""
    summary = f"{counted(len(result.indices), 'arm')} {kept_word(report)}{order}"
    return (
        f'<details class="listed"><summary>{summary}</summary>'
        f'<ul class="chips">{items}</ul>'
        f'<p class="soft">The order is not part of the guarantee.{note}</p></details>'
    )


def _pair(figures: str) -> str:
    return f'<div class="pair">{figures}</div>' if figures else ""


def _effort(report: Report) -> str:
    return _section("Cost", _pair(bounds_figure(report) + rounds_figure(report)))


def _health(report: Report) -> str:
    if not report.findings:
        return _section("Health", f"<p>{healthy_words(report)}</p>")
    items = ""
    for one in report.findings:
        label = "Warning" if one.is_warning else "Note"
        items += f'<li class="{label.lower()}"><b>{label}:</b> {markup.words(one.words)}</li>'
    return _section("Health", f'<ul class="findings">{items}</ul>')


def _workers(report: Report) -> str:
    if not report.workers:
        return ""
    rows = [
        [
            markup.name(worker_words(work.worker), 60),
            f"{work.n_answers:,}",
            f"{work.n_pulls:,}",
            _share(work.share),
        ]
        for work in report.workers[:_MOST_WORKERS]
    ]
    if others := report.workers[_MOST_WORKERS:]:
        sums = [sum(work.n_answers for work in others), sum(work.n_pulls for work in others)]
        share = percent(sum(work.share for work in others))
        rows.append([f"{len(others):,} more", *(f"{one:,}" for one in sums), share])
    return _section(
        "Who measured",
        table("Workers, and what they measured", ["worker", "tickets", "pulls", "share"], rows),
    )


def _share(share: float) -> str:
    bar = f'<span class="share" style="width:{100 * share:.1f}%"></span>'
    return f'<span class="meter">{bar}</span>{percent(share)}'


def _provenance(report: Report) -> str:
    entries = "".join(
        f"<dt>{markup.words(label)}</dt><dd>{markup.name(said, 2000)}</dd>"
        for label, said in provenance(report)
    )
    written = (
        f"<dt>Report written</dt><dd>{universal(report.made_at)} by Shortlist {version('shortlist')}, Python "
        f"{platform.python_version()}, NumPy {version('numpy')}</dd>"
    )
    again = f"<dt>To reproduce</dt><dd><code>{markup.words(reproduction(report))}</code></dd>"
    return _section("Provenance", f"<dl>{entries}{again}{written}</dl>")


def _references(report: Report) -> str:
    said = "<p>References to cite for this run:</p>"
    return _section("References", f"{said}<pre>{_lines(bibtex(report.result))}</pre>")


def _lines(text: str) -> str:
    return "\n".join(markup.words(line) for line in text.rstrip().split("\n"))
