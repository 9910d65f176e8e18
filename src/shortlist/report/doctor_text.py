"""A diagnosis for a terminal: findings, advice, and how long a run will take."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.doctor import Diagnosis

_STYLES = {"error": "bold red", "note": "yellow", "ok": "green"}


def diagnosis_text(diagnosis: Diagnosis) -> RenderableType:
    """Return a diagnosis as a list of findings, a verdict and an estimate of the time."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in diagnosis.findings:
        said = Text(finding.seen)
        if finding.advice:
            said.append(f"\n{finding.advice}", style="dim")
        table.add_row(Text(finding.severity, style=_STYLES[finding.severity]), finding.subject, said)
    n_errors = sum(finding.severity == "error" for finding in diagnosis.findings)
    verdict = Text("No problems found.", style="green")
    if n_errors:
        first = "1 error: fix this first." if n_errors == 1 else f"{n_errors} errors: fix these first."
        verdict = Text(first, style="bold red")
    return Group(table, Text(), Text(time_words(diagnosis)), verdict)


def time_words(diagnosis: Diagnosis) -> str:
    """Return a sentence that says how long a run will take."""
    pace, most = diagnosis.seconds_per_pull, diagnosis.worst_case_pulls
    if pace is None:
        return "No pull succeeded, so the duration of a run is unknown."
    said = f"A pull takes {span(pace)}."
    if diagnosis.pilot_pulls is not None:
        pilot = diagnosis.pilot_pulls
        return (
            f"{said} {diagnosis.strategy} starts with a pilot of {pilot:,} pulls: {span(pace * pilot)} "
            f"with one worker. The maximum number of further pulls is known after the pilot."
        )
    if most is None:
        return f"{said} {diagnosis.strategy} has no limit on pulls."
    said += f" {diagnosis.strategy} makes at most {most:,} pulls: {span(pace * most)} with one worker"
    if diagnosis.usual_pulls is not None and diagnosis.usual_pulls < most:
        usual = diagnosis.usual_pulls
        said += f"; usually about {float(f'{usual:.2g}'):,.0f}: {span(pace * usual)}"
    return f"{said}."


def span(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    units = [(1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min")]
    for below, unit, name in units:
        if seconds < below:
            return f"{seconds / unit:.2g} {name}" if seconds < 100 * unit else f"{seconds / unit:.0f} {name}"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.0f} days"
