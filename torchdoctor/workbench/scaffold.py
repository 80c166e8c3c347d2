"""From a log to the stubs of a rule: template, case, near miss. They fail the lint until filled."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass

from torchdoctor.catalog import RuleSet, template
from torchdoctor.catalog.loader import FAMILIES
from torchdoctor.engine import suspect
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import Event, EventKind, TorchdoctorError, Transcript, counted
from torchdoctor.share.redaction import redact
from torchdoctor.workbench.case import NONE, UNFINISHED, Case
from torchdoctor.workbench.cases import file_of, put
from torchdoctor.workbench.collect import read_log

MAX_TEMPLATE = 200
CASE, NEAR = "first", "near"

_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_HEX, _PATHS = r"0x[0-9a-fA-F]{2,16}", r"(?<![\w/])(?:[A-Za-z]:[\\/]|/)[^\s\"'<>|]{2,300}"
_NUMBERS = re.compile(
    rf"(?P<word>{_HEX})|(?P<path>{_PATHS})"
    r"|(?P<size>\b\d+(?:\.\d+)? (?:[KMGT]i?B|bytes)\b)"
    r"|(?P<version>\b\d+\.\d+\.\d+[\w.+-]*)"
    r"|(?P<float>(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?\b|(?<![\w.])-?\d+e[-+]\d+\b)"
    r"|(?P<int>(?<![\w.])-?\d+\b)"
)
_BY_KIND = {
    EventKind.NCCL: "distributed",
    EventKind.WATCHDOG: "distributed",
    EventKind.LAUNCHER: "distributed",
    EventKind.DEVICE_ASSERT: "cuda-runtime",
    EventKind.KERNEL_LOG: "hardware",
    EventKind.BUILD: "extension",
    EventKind.SCHEDULER: "scheduler",
}
# a message under one of these kinds is only told from other text by its kind
_NAMED_KINDS = frozenset(_BY_KIND)


class ScaffoldError(TorchdoctorError):
    """A rule that cannot be started so; the message says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class Stubs:
    """What is to be written (files: path -> text), and what the person should know of it."""

    files: dict[str, str]
    cases: tuple[Case, ...]
    fixtures: str
    family: str
    template: str
    notes: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The files that ``write`` writes."""
        return [*self.files, *dict.fromkeys(file_of(self.fixtures, case.of) for case in self.cases)]


def start(
    rule_id: str,
    log: str,
    rules: RuleSet,
    directory: str,
    fixtures: str,
    family: str | None = None,
    line: int | None = None,
) -> Stubs:
    """The stubs of a rule for the failure in a log; ``line`` chooses the message, else the likeliest cause.

    Names and secrets are taken out of what is written. Writes nothing. Raises ScaffoldError, CaseError, or
    IntakeError for a log that cannot be read.
    """
    _free(rule_id, rules, directory, fixtures)
    text, transcript = read_log(log)
    event = _event(transcript, log, line)
    shown = redact(text, {item.host for item in transcript.events if item.host})
    notes = [f"taken out of the log: {', '.join(shown.replaced)}"] if shown.replaced else []
    report = diagnose(transcript, FactBook(), rules)
    if report.diagnoses:
        top = report.diagnoses[0]
        notes.append(
            f"the catalog says {top.rule} ({top.standing.value}) of this log: refine or correct that rule?"
        )
    chosen = _family(rule_id, event, rules, family)
    source = as_template(redact(_message(event)).text)
    if _literal(source) < template.MIN_LITERAL and not event.type:
        notes.append("the message holds little that is its own: give the match an event kind and a where")
    rule_file = os.path.join(directory, chosen, f"{rule_id}.toml")
    files = {rule_file: _rule(rule_id, chosen, event, source)}
    listed = os.path.join(directory, "ids.txt")
    if os.path.exists(listed):
        files[listed] = _listed(listed, rule_id)
    return Stubs(files, _cases(rule_id, shown.text), fixtures, chosen, source, tuple(notes))


def _free(rule_id: str, rules: RuleSet, directory: str, fixtures: str) -> None:
    if not _ID.fullmatch(rule_id):
        raise ScaffoldError(
            f'"{rule_id}" is no id: small letters, digits and hyphens, such as "{_as_id(rule_id)}"'
        )
    if rule_id in rules:
        raise ScaffoldError(
            f"{rule_id} exists in {rules.rule(rule_id).family}/; see `torchdoctor rules show {rule_id}`. "
            "An id is never reused"
        )
    taken = file_of(fixtures, rule_id)
    if os.path.exists(taken):
        raise ScaffoldError(f"{taken} exists; remove it or choose another id")
    if not os.access(directory, os.W_OK):
        raise ScaffoldError(f"{directory}: cannot be written; name a folder of your own with --rules DIR")


def _as_id(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "out-of-range-label"


def _event(transcript: Transcript, log: str, line: int | None) -> Event:
    """The message that the rule is to know."""
    events = [event for event in transcript.events if event.text.strip() or event.type]
    if line is not None:
        for event in events:
            if event.line <= line <= event.end_line:
                return event
        raise ScaffoldError(
            f"{log}:{line}: no message there; the log has {counted(transcript.lines_read, 'line')}"
        )
    likely = suspect.unexplained(transcript, set())
    chosen = suspect.choose(likely, transcript, None) if likely else suspect.fallback(transcript)
    if chosen is not None and chosen.evidence.line is not None:
        at = chosen.evidence.line
        for event in events:
            if event.line <= at <= event.end_line:
                return event
    raise ScaffoldError(f"{log}: no failure is found in it; name the line of the message with --line N")


def _message(event: Event) -> str:
    """The first line of the message that says something."""
    lines = [line for line in event.text.splitlines() if len(line.strip()) >= template.MIN_LITERAL]
    return template.fold(lines[0] if lines else event.text or event.type or "")


def as_template(message: str) -> str:
    """A message with its numbers, versions, sizes and paths as holes; cut where it gets long."""
    names: Counter[str] = Counter()
    pieces: list[str] = []
    position = 0
    for found in _NUMBERS.finditer(message):
        literal = message[position : found.start()].replace("{", "{{").replace("}", "}}")
        if sum(map(len, pieces)) + len(literal) > MAX_TEMPLATE:
            break
        kind = str(found.lastgroup)
        names[kind] += 1
        pieces += [literal, f"{{{kind}{names[kind]}:{kind}}}"]
        position = found.end()
    room = MAX_TEMPLATE - sum(map(len, pieces))
    rest = message[position:]
    if len(rest) > room:
        cut = rest[: max(room, 0)]
        rest = cut.rpartition(" ")[0] or cut
    return "".join([*pieces, rest.replace("{", "{{").replace("}", "}}")]).strip()


def _literal(source: str) -> int:
    try:
        return len(template.parse(source).literal)
    except template.TemplateError:
        return 0


def _family(rule_id: str, event: Event, rules: RuleSet, family: str | None) -> str:
    if family is not None:
        if family not in FAMILIES:
            raise ScaffoldError(f'no family "{family}"; there are: {", ".join(FAMILIES)}')
        return family
    first = rule_id.partition("-")[0]
    alike = Counter(rules.rule(name).family for name in rules.ids() if name.partition("-")[0] == first)
    if alike:
        return alike.most_common(1)[0][0]
    return _BY_KIND.get(event.kind, "python")


def _quoted(text: str) -> str:
    """A TOML text on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04X}" for char in escaped) + '"'


def _rule(rule_id: str, family: str, event: Event, source: str) -> str:
    severity = "warning" if event.kind is EventKind.WARNING else "fatal"
    about: list[str] = []
    if event.kind in _NAMED_KINDS:
        about.append(f"event = {_quoted(event.kind.value)}")
    if event.type:
        about.append(f"type  = {_quoted(event.type.rpartition('.')[2])}")
    text = source or (event.type or "")
    return "\n".join(
        [
            f"id          = {_quoted(rule_id)}",
            f"family      = {_quoted(family)}",
            f"severity    = {_quoted(severity)}",
            'role        = "cause"',
            f'title       = "{UNFINISHED}: what is wrong, in one line"',
            f'why         = """{UNFINISHED}: a paragraph in plain words: what happens, why it shows so."""',
            "leads_to    = []",
            f'references  = ["{UNFINISHED}: an https address, or an empty list"]',
            "",
            f"# {UNFINISHED}: which versions or which program print this; cut it to its own words",
            "[[match]]",
            *about,
            f"text  = {_quoted(text)}",
            "",
            "[[fix]]",
            f'do   = "{UNFINISHED}: what to change, with the values of the message: {{match.NAME}}"',
            'risk = "safe"',
            "",
        ]
    )


def _cases(rule_id: str, log: str) -> tuple[Case, ...]:
    """The log, and the stub of a near miss."""
    first = Case(
        CASE,
        rule_id,
        of=rule_id,
        origin="captured",
        note=f"{UNFINISHED}: what ran, what was replaced",
        data=log.encode("utf-8", "replace"),
    )
    near = Case(
        NEAR,
        NONE,
        of=rule_id,
        origin="reconstructed",
        note=f"{UNFINISHED}: why it is not {rule_id}",
        data=f"{UNFINISHED}: a log that looks like it and has another cause, or none\n".encode(),
    )
    return first, near


def _listed(path: str, rule_id: str) -> str:
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    ids = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    return "\n".join([*comments, *sorted({*ids, rule_id})]) + "\n"


def write(stubs: Stubs) -> None:
    """Write files and cases, with the folders they lie in. Raises ScaffoldError or CaseError."""
    for path, text in stubs.files.items():
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise ScaffoldError(f"{path}: cannot be written: {error.strerror}") from error
    for case in stubs.cases:
        put(stubs.fixtures, case)
