"""What agents get: answers in less than 8 kB, with a pointer to the rest; nothing is written or changed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from torchdoctor import catalog
from torchdoctor.engine import FactBook
from torchdoctor.model import Report, TorchdoctorError

LIMIT = 8_000  # bytes
_SEARCH_SHOWN = 12
_LEAST = 0.1  # likeness of a message
_ID_WEIGHT = 3  # of a word in the id or title, against one in the explanation
# (characters of a text, items of a list), tried in turn until all fits
_SIZES = ((2_000, 20), (800, 8), (300, 5), (160, 3), (80, 2), (40, 1))
_LEFT_OUT = ("facts", "timeline", "checks", "references", "reasons", "schema")
_INTERPRETER = re.compile(r"python[\d.]*(?:\.exe)?", re.IGNORECASE)


class Refused(TorchdoctorError):
    """What an agent may not ask for, or asked for in a way that cannot be answered."""


def explain_log(path: str, text: str, roots: Sequence[str] | None) -> str:
    """The report on a file or folder, or on a text, as JSON. ``roots``: folders outside of which nothing is
    read; None where the client names none. Raises Refused."""
    from torchdoctor.engine.incident import explain

    if bool(path) == bool(text):
        raise Refused("give either path (a log or a folder of logs) or text (what the program printed)")
    rules = catalog.load_with_packs()[0]
    if text:
        from torchdoctor.engine.diagnose import diagnose
        from torchdoctor.intake import read_text

        report, rest = diagnose(read_text(text), FactBook(), rules), "torchdoctor explain --format json -"
    else:
        path = allowed(path, roots)
        report = explain((path,), FactBook(), rules).report
        rest = f"torchdoctor explain --format json {path}"
    return fitted(_of(report), f"{rest}; a rule in full: show_rule, or torchdoctor://rules/ID")


def check_environment(python: str, roots: Sequence[str] | None) -> str:
    """What will fail with an interpreter on this machine, as JSON, and what could not be determined.

    Starts the interpreter, which has to be named like one. Raises Refused, InterpreterError.
    """
    from torchdoctor.engine.check import check
    from torchdoctor.engine.torch_imports import with_import
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.opening import open_live, pick

    if python:
        python = _interpreter(python, roots)
    with ended_with_us():
        chosen = pick(python or None)
        source = open_live(chosen.python)
        try:
            facts = FactBook(source)
            report = with_import(check(facts, catalog.load_with_packs()[0]), facts)
        finally:
            source.close()
    data = _of(report)
    bad = [one for one in report.checks if one.verdict.value in ("fail", "warn")]
    data = {
        "passed": sum(one.verdict.value == "pass" for one in report.checks),
        "problems": [
            {
                "id": one.id,
                "verdict": one.verdict.value,
                "title": one.title,
                "evidence": [item.text for item in one.evidence] or [one.observed],
                "action": one.action,
            }
            for one in sorted(bad, key=lambda one: one.verdict.value)
        ],
        "not_checked": data["not_checked"],
        "python": chosen.python,
        "notes": [note for note in (chosen.note, *data["notes"]) if note],
    }
    return fitted(data, f"torchdoctor check --format json{f' --python {python}' if python else ''}")


def show_rule(rule_id: str) -> str:
    """The page of a rule as text. Raises UnknownRuleError."""
    text = page(rule_id)
    if len(text.encode()) <= LIMIT:
        return text
    pointer = f"\n… cut here; the rest: torchdoctor://rules/{rule_id}, or torchdoctor rules show {rule_id}"
    kept = text.encode()[: LIMIT - len(pointer.encode())].decode(errors="ignore")
    return kept.rpartition("\n")[0] + pointer


def page(rule_id: str) -> str:
    """The whole page. Raises UnknownRuleError."""
    from torchdoctor.catalog.pages import gathered, in_text

    return in_text(gathered(catalog.load_with_packs()[0], rule_id), 100)


def search_rules(query: str) -> str:
    """The rules that know a message like the query, then those whose title or explanation has its words."""
    from torchdoctor.catalog.nearest import nearest

    rules = catalog.load_with_packs()[0]
    near = [one.rule for one in nearest(catalog.rules_directory(), query, least=_LEAST) if one.rule in rules]
    words = set(re.findall(r"\w{3,}", query.lower()[:2_000]))
    scores: dict[str, int] = {}
    for rule in rules.rules():
        head = f"{rule.id} {rule.title}".lower()
        why = rules.text(rule.id).why.lower()
        scores[rule.id] = sum(_ID_WEIGHT * (word in head) + (word in why) for word in words)
    found = sorted((id_ for id_ in scores if scores[id_]), key=lambda id_: -scores[id_])
    ids = list(dict.fromkeys((*near, *found)))
    rows = [{"id": id_, "title": rules.rule(id_).title, "family": rules.rule(id_).family} for id_ in ids]
    data = {"rules": rows[:_SEARCH_SHOWN], "found": len(rows)}
    return fitted(data, "a rule in full: show_rule; all of them: torchdoctor rules list --format json")


def allowed(path: str, roots: Sequence[str] | None) -> str:
    """The real path of a file or folder that may be read. Raises Refused where it leads out of the roots."""
    real = os.path.realpath(path)
    if roots is not None and not any(_inside(real, os.path.realpath(root)) for root in roots):
        raise Refused(f"{path}: outside of the folders that the client allows ({', '.join(roots)})")
    if not os.path.exists(real):
        raise Refused(f"{path}: no such file or folder; a pattern is not expanded")
    return real


def _interpreter(python: str, roots: Sequence[str] | None) -> str:
    """Its path, where the folder of the interpreter may be read: what stands there may be a link."""
    from torchdoctor.probes.opening import resolve

    found = resolve(python)
    folder, name = os.path.split(found)
    if not _INTERPRETER.fullmatch(name):
        raise Refused(f"{python}: not the name of a Python interpreter")
    return os.path.join(allowed(folder, roots), name)


def _inside(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # on another drive
        return False


def _of(report: Report) -> dict[str, Any]:
    from torchdoctor.render.json import to_dict

    return {name: value for name, value in to_dict(report).items() if name not in _LEFT_OUT}


def fitted(data: dict[str, Any], rest: str) -> str:
    """The data as JSON of at most LIMIT bytes. ``cut`` says whether something is missing, ``rest`` is the
    pointer to all of it."""
    text = ""
    for chars, items in _SIZES:
        cut: list[bool] = []
        told = _cut(data, chars, items, cut)
        text = json.dumps({**told, "cut": any(cut), "rest": rest[:500]}, separators=(",", ":"))
        if len(text) <= LIMIT:
            break
    return text


def _cut(value: Any, chars: int, items: int, cut: list[bool]) -> Any:
    """The value with texts and lists of at most that size; ``cut`` gets a True for each that was longer."""
    if isinstance(value, str):
        cut.append(len(value) > chars)
        return value[:chars] + " …" if cut[-1] else value
    if isinstance(value, list):
        cut.append(len(value) > items)
        return [_cut(one, chars, items, cut) for one in value[:items]]
    if isinstance(value, dict):
        return {name: _cut(one, chars, items, cut) for name, one in value.items() if name not in _LEFT_OUT}
    return value
