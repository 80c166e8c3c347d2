"""The figures of an evaluation as text: totals, parts, families, and every miss with its line."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.model import counted
from torchdoctor.workbench.case import NONE, UNRECOGNISED, Case
from torchdoctor.workbench.evaluate import TOP, Evaluation, Result, Share, evidence, share, shares


def in_words(result: Evaluation) -> str:
    """The figures, then every miss with what was expected, what came, and the line it stands on."""
    lines = [*_totals(result), "", *_parts(result)]
    lines += ["", f"  {'family':<16} top-1                 top-{TOP}"]
    families = shares(result.known, lambda item: item.family)
    lines += [f"  {name:<14} {one}   {three}" for name, one, three in families]
    if result.unknown:
        lines += ["", f"  no rule for the cause: {_unknown_in_words(result.unknown)}"]
    named = (
        ("Right by a special case of the labelled rule", result.by_special_case),
        ("Ticks on failures", result.ticks),
        ("Doubted, and nothing failed", result.doubted),
    )
    for title, found in named:
        if found:
            lines += ["", title, *(f"  {item.case.id}" for item in found)]
    if result.misses:
        lines += ["", "Misses"]
        lines += [line for item in result.misses for line in _miss_in_words(item)]
    differing = [(item.case.id, item.differences) for item in result.results if item.differences]
    if differing:
        lines += ["", "Other differences from the label"]
        lines += [f"  {name}: {'; '.join(texts)}" for name, texts in differing]
    return "\n".join(lines)


def compared(result: Result) -> str:
    """Whether a report is what the label of its case says, in one line or a few."""
    if result.right_within(1) and not result.differences:
        return f"✓ {result.case.id}: as its label says"
    if result.right_within(1):
        return f"✗ {result.case.id}: {'; '.join(result.differences)}"
    return "\n".join(["✗" + _miss_in_words(result)[0][1:], *_miss_in_words(result)[1:]])


def listed(cases: Sequence[Case]) -> str:
    """A line a case: name, origin, what is expected, the first line of its note."""
    name = max((len(case.name) for case in cases), default=0)
    rule = max((len(case.rule) for case in cases), default=0)
    lines = (
        f"{case.name:<{name}}  {case.origin:<13}  {case.rule:<{rule}}  {case.note.partition(chr(10))[0]}"
        for case in cases
    )
    return "\n".join(line.rstrip() for line in lines)


def _totals(result: Evaluation) -> list[str]:
    negatives, unrecognised = result.negatives, result.unrecognised
    lines = [
        f"{counted(len(result.results), 'case')}: {len(result.known)} whose cause has a rule, "
        f"{len(result.unknown)} without one, {len(unrecognised)} that no rule should know, "
        f"{len(negatives)} with nothing to find",
        "",
        f"  top-1                {result.top(1)}",
        f"  top-{TOP}                {result.top(TOP)}",
        f"  unrecognised         {share(unrecognised, 1)}",
        f"  false positives      {Share(len(result.false_positives), len(negatives))}",
        f"  ticks on failures    {Share(len(result.ticks), len(result.results) - len(negatives))}",
        f"  doubted              {Share(len(result.doubted), len(negatives))}",
        f"  wrong and confirmed  {len(result.wrong_and_confirmed):4d}",
    ]
    if result.user_frames.of:
        lines.append(f"  user frame           {result.user_frames}")
    return lines


def _parts(result: Evaluation) -> list[str]:
    """A line a part; what a part has no case for is "-"."""
    lines = [f"  {'part':<14} cases  top-1                  alarms  unrecognised  ticks  doubted  confirmed"]
    for name, part in result.parts.items():
        alarms = f"{len(part.false_positives)}/{len(part.negatives)}" if part.negatives else "-"
        known = f"{share(part.unrecognised, 1).right}/{len(part.unrecognised)}" if part.unrecognised else "-"
        lines.append(
            f"  {name or '-':<14} {len(part.results):5d}  {part.top(1)!s:21} {alarms:>7}  {known:>12}  "
            f"{len(part.ticks):5d}  {len(part.doubted):7d}  {len(part.wrong_and_confirmed):9d}"
        )
    return lines


def _unknown_in_words(results: Sequence[Result]) -> str:
    right = share(results, 1).right
    silent = sum(not item.got for item in results)
    wrong = sum(item.wrong_and_confirmed for item in results)
    other = len(results) - right - silent - wrong
    return (
        f"{right} right through `also`, {silent} without a diagnosis, "
        f"{other} a consequence or not certain, {wrong} wrong and confirmed"
    )


def _miss_in_words(item: Result) -> list[str]:
    also = f" (or {', '.join(item.case.also)})" if item.case.also else ""
    got = ", ".join(f"{one.rule} ({one.standing.value})" for one in item.got[:TOP])
    file, line, text = evidence(item)
    place = f"{file}:{line}" if file and line else "-"
    rule = "" if item.has_rule or item.case.rule in (NONE, UNRECOGNISED) else ", which has no rule"
    lines = [
        f"  {item.case.id}: expected {item.case.rule}{also}{rule}",
        f"    got   {got or item.report.outcome.value}",
    ]
    return [*lines, f"    line  {place}  {text}"] if text else lines
