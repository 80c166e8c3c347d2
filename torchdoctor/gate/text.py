"""A verdict for people: the verdict first, then what decides it with its proof and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.gate.finding import EXIT, Action, Finding, Verdict, Weight
from torchdoctor.gate.outcome import GateOutcome, ordered
from torchdoctor.gate.steps import steps
from torchdoctor.model import counted
from torchdoctor.render.clean import clean
from torchdoctor.render.lines import wrap

_WORDS = {
    Verdict.FIT: "FIT: the node is fit for the job",
    Verdict.UNFIT: "UNFIT: the node is at fault",
    Verdict.ENVIRONMENT: "NOT THE NODE: the job's environment or request is at fault",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE: it could not be determined",
}
_SIGNS = {Verdict.FIT: "✓", Verdict.UNFIT: "✗", Verdict.ENVIRONMENT: "✗", Verdict.INCONCLUSIVE: "?"}
_MARKS = {Weight.FAIL: "✗", Weight.WARN: "!", Weight.INFO: "·"}
_DO = {
    Action.NONE: "",
    Action.CHANGE_JOB: "change the job's environment or request",
    Action.RESTART_JOB: "restart the affected job",
    Action.END_PROCESS: "end the process that is using it",
    Action.CHANGE_SETTING: "change the setting",
    Action.CLEAN_UP: "clean up",
    Action.RESTART_SERVICE: "restart the service",
    Action.RESET_GPU: "drain the node, reset the GPU (nvidia-smi -r)",
    Action.DRAIN_RESET: "drain the node, reset all its GPUs",
    Action.REBOOT: "drain and reboot the node; inspect it when it comes back",
    Action.CHECK_NETWORK: "check the network or the file server",
    Action.INSPECT: "inspect it",
    Action.RMA: "drain the node, have the card replaced",
}


def render(
    outcome: GateOutcome, width: int = 100, verbose: bool = False, explain: bool = False, file: str = ""
) -> Iterator[tuple[str, str]]:
    """Lines of text, each with its mark or ""; data in it is cleaned.

    ``explain`` adds what to do next; ``file`` is where the verdict is kept.
    """
    verdict = outcome.verdict
    observing = ", observing only" if outcome.observe else ""
    yield _SIGNS[verdict], f"{_WORDS[verdict]} (exit code {EXIT[verdict]}{observing})"
    expected = outcome.expected.get("gpus")
    wanted = f", {expected} expected ({outcome.expected.get('source')})" if expected is not None else ""
    models = ", ".join(dict.fromkeys(str(one.get("name")) for one in outcome.gpus))
    about = f"{outcome.host}: {counted(len(outcome.gpus), 'GPU')}{f' ({models})' if models else ''}{wanted}"
    yield "", clean(f"  {about}; tier {outcome.tier}, {outcome.seconds.get('total', 0):.1f} s")
    for one in ordered(outcome.findings):
        if one.weight is not Weight.INFO or verbose:
            yield "", ""
            yield from _finding(one, width)
            if explain:
                yield from _steps(one, outcome.host, file or "VERDICT.json", width)
    for head, required in (
        ("Could not be determined, but required:", True),
        ("Could not be determined:", False),
    ):
        chosen = [one for one in outcome.untold if one.required is required]
        if chosen:
            yield "", ""
            yield "?", head
        for item in chosen:
            yield from _wrap(f"{item.check}: {item.reason}", width)
    for note in (*outcome.suppressions, *outcome.notes):
        yield from _wrap(note, width)


def _finding(one: Finding, width: int) -> Iterator[tuple[str, str]]:
    where = " ".join(
        part for part in (f"GPU {one.gpu}" if one.gpu is not None else "", one.pci, one.uuid) if part
    )
    blame = f"; blame: {one.blame.value}" if one.blame is not None else ""
    where = f" ({where})" if where else ""
    yield _MARKS[one.weight], clean(f"{one.title}{where}  [{one.check}{blame}]")
    if one.suppressed:
        yield from _wrap(f"suppressed by {one.suppressed}", width)
    expected = f"; expected {one.expected}" if one.expected else ""
    source = f" ({one.source})" if one.source and one.expected else ""
    yield from _wrap(f"{one.observed}{expected}{source}", width)
    for text in one.evidence:
        if text != one.observed:
            yield from _wrap(text, width)
    if one.retest:
        yield from _wrap(one.retest, width)
    do = advice(one)
    if do:
        yield from _wrap(f"Do: {do}", width)


def advice(one: Finding) -> str:
    """What to do about it; "" for nothing."""
    return "; ".join(part for part in (_DO[one.action], one.advice) if part)


def _steps(one: Finding, node: str, file: str, width: int) -> Iterator[tuple[str, str]]:
    """What an operator does next, one step after the other; a command stands on a line of its own, whole."""
    for number, step in enumerate(steps(one, node, file), start=1):
        risk = f" ({step.risk})" if step.risk else ""
        yield from _wrap(f"{number}. {step.do}{risk}", width)
        if step.run:
            yield "", f"         {clean(step.run)}"


def _wrap(text: str, width: int) -> Iterator[tuple[str, str]]:
    for line in wrap(text, max(width, 40), hang=2):
        yield "", line
