"""A diagnosis for a terminal: findings, advice, and how long a run will take."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.doctor import Diagnosis
from shortlist.doctor.estimate import span

_STYLES = {"error": "bold red", "note": "yellow", "ok": "green"}


def diagnosis_text(diagnosis: Diagnosis) -> RenderableType:
    """Return a diagnosis: the findings, an estimate of the time, what follows from it, and a verdict."""
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
    costs = [Text(line) for line in cost_lines(diagnosis)]
    advice = [Text(said, style="yellow") for said in diagnosis.estimate.advice]
    return Group(table, Text(), *costs, *advice, verdict)


def cost_lines(diagnosis: Diagnosis) -> list[str]:
    """Return what a run will cost: pulls and time with one worker, time with several, where that is from."""
    pace, problem = diagnosis.seconds_per_pull, diagnosis.problem
    if pace is None:
        return ["No pull succeeded, so the duration of a run is unknown."]
    if problem.m == problem.n:
        return ["All arms are selected, so no measurement is needed."]
    noun = "score" if problem.has_pool else "pull"
    alone = f"A {noun} takes {span(pace)}. {_pulls_words(diagnosis, pace, f'{noun}s')}"
    lines = [f"{alone} {_cost_words(diagnosis)}".rstrip(), _workers_words(diagnosis)]
    if instance := diagnosis.estimate.instance:
        lines.append(f"The usual number is an estimate from simulated runs: {instance}.")
    return [line for line in lines if line]


def _pulls_words(diagnosis: Diagnosis, pace: float, noun: str) -> str:
    """Return how many pulls a run makes, at most and usually, and how long they take with one worker."""
    name, most, usual = diagnosis.strategy, diagnosis.worst_case_pulls, diagnosis.estimate.usual_pulls
    usually = "" if usual is None else f"usually makes about {_rough(usual)} {noun}: {span(pace * usual)}"
    if diagnosis.pilot_pulls is not None:
        pilot = diagnosis.pilot_pulls
        said = f"{name} starts with a pilot of {pilot:,} {noun}: {span(pace * pilot)} with one worker."
        said += f" A run {usually}." if usually else ""
        return f"{said} The maximum number of further {noun} is known after the pilot."
    if most is None:
        limit = f"has no limit on {noun}"
        return f"{name} {usually} with one worker. It {limit}." if usually else f"{name} {limit}."
    said = f"{name} makes at most {most:,} {noun}: {span(pace * most)} with one worker"
    return f"{said}. It {usually}." if usual is not None and usual < most else f"{said}."


def _cost_words(diagnosis: Diagnosis) -> str:
    """Return what the usual pulls cost, if pulls have costs."""
    usual, whole = diagnosis.estimate.usual_cost, diagnosis.estimate.whole_table
    if usual is None:
        return ""
    of = "" if whole is None or whole.cost is None else f", of {whole.cost:,.6g} for the whole table"
    return f"They usually cost about {_rough(usual)}{of}."


def _workers_words(diagnosis: Diagnosis) -> str:
    """Return how long a run takes with workers, and the options for that."""
    found, wanted = diagnosis.estimate.workers, diagnosis.workers
    if found is None:
        reason = diagnosis.estimate.no_workers
        return f"More workers do not help: {reason}." if wanted is not None and reason else ""
    said = f"With {found.options} it usually takes about {span(found.seconds)}"
    if found.strategy is not None:
        said += f" and {_rough(found.pulls)} pulls: in fewer rounds, workers wait less for each other"
    elif found.waits and wanted is None:
        said += "; calls mostly wait, so you can use more workers than processors"
    return f"{said}."


def _rough(number: float) -> str:
    """Return a number with two digits that count."""
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
