"""From a transcript to a report: match, judge, link, rank, select."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import suspect
from torchdoctor.engine.context import OWN_CODE, waited_by_chance, without_own_code, without_past
from torchdoctor.engine.echo import mark_echoes, mark_own_ends
from torchdoctor.engine.factbook import FactBook, TextFacts
from torchdoctor.engine.finding import Finding
from torchdoctor.engine.frames import SPAWNED
from torchdoctor.engine.judge import judge
from torchdoctor.engine.link import chains
from torchdoctor.engine.match import occurrences
from torchdoctor.engine.rank import sort_key
from torchdoctor.engine.select import INTERRUPTED, led, note, of_last_attempt, select
from torchdoctor.engine.textfacts import log_value, related, says_nothing_of_its_program
from torchdoctor.model import (
    Diagnosis,
    Ending,
    Event,
    EventKind,
    FirstFailure,
    Form,
    Outcome,
    Report,
    Severity,
    Suspect,
    Transcript,
)
from torchdoctor.records import replace

if TYPE_CHECKING:
    from torchdoctor.model import Moment

# what tells of ranks without being printed by one
_OF_MANY = (EventKind.LAUNCHER, EventKind.SCHEDULER, EventKind.STACK, EventKind.NCCL, EventKind.WATCHDOG)

# a log that was written without its standard error is what a person has who wonders
_NOTHING = "The input holds no text. Python writes its errors to standard error: train.py > train.log 2>&1"

# what torch.jit.load runs is the code as it was saved
_ARCHIVED = (
    "The code ran out of a TorchScript archive: a change of the source takes effect when it is exported "
    "again, and the paths are those of the machine that exported it"
)


def diagnose(transcript: Transcript, facts: FactBook, rules: RuleSet) -> Report:
    """The report on one transcript, of its last run, or of its last failure where that run only begins.

    Asks ``facts`` only for what the conditions of matching rules name. The other runs are judged by the text
    alone, and each is told in a note. Never raises for anything that stands in it.
    """
    (report,) = _as_it_stands([_diagnosed(transcript, facts, rules)], transcript)
    return report


def _diagnosed(transcript: Transcript, facts: FactBook, rules: RuleSet) -> Report:
    if not transcript.earlier:
        report = _judged(transcript, facts, rules)
        if report.outcome is Outcome.UNRECOGNISED and says_nothing_of_its_program(transcript):
            report = _taken_for_torch(report, transcript, facts, rules)
        return report
    from torchdoctor.engine.runs import explained, with_runs

    parts = [*transcript.earlier, transcript]
    reports = [_judged(run, FactBook(), rules) for run in transcript.earlier]
    reports.append(_judged(transcript, facts, rules))
    index = explained(reports, parts)
    if parts[index] is not transcript:
        reports[index] = _judged(parts[index], facts, rules)
    return with_runs(reports, parts, index)[index]


def diagnose_runs(transcript: Transcript, facts: FactBook, rules: RuleSet) -> list[Report]:
    """A report on each run of a transcript, in order. Asks ``facts`` for all of them. Never raises."""
    from torchdoctor.engine.runs import with_runs

    parts = [*transcript.earlier, transcript]
    return _as_it_stands(with_runs([_judged(run, facts, rules) for run in parts], parts), transcript)


def _as_it_stands(reports: list[Report], transcript: Transcript) -> list[Report]:
    """The reports with the numbers of the lines as they stand in a text that was read in another order."""
    if not transcript.orders:
        return reports
    from torchdoctor.engine.turned import as_it_stands

    return [as_it_stands(report, transcript.orders) for report in reports]


def _taken_for_torch(report: Report, transcript: Transcript, facts: FactBook, rules: RuleSet) -> Report:
    """What is possible, if a message that many programs print is torch's; else the report as it was.

    Who asks this doctor of a bare message uses torch.
    """
    again = _judged(transcript, facts, rules, of_torch=True)
    return again if again.diagnoses and again.diagnoses[0].severity is Severity.FATAL else report


def _judged(transcript: Transcript, facts: FactBook, rules: RuleSet, *, of_torch: bool = False) -> Report:
    """The report on the events of one run."""
    kernel = any(event.kind is EventKind.KERNEL_LOG for event in transcript.events)
    transcript, foreign = _with_kernel_log(transcript) if kernel else (transcript, ())
    text_facts = TextFacts(transcript, facts, of_torch=of_torch)
    findings = judge(occurrences(transcript, rules, text_facts), rules, text_facts)
    live = [finding for finding in findings if not finding.recovered]
    anchored = _has_anchored_failure(live, transcript)
    if not anchored:
        written = judge(occurrences(transcript, rules, text_facts, written=True), rules, text_facts)
        live += [finding for finding in written if not finding.recovered]
    live = live or _of_requests(findings, transcript)
    mark_own_ends(live, transcript)
    live = without_own_code(live, transcript)
    live, unbuilt = _without_unbuilt(live, transcript)
    live = [one for one in live if _tells_who(one) or not waited_by_chance(one, transcript)]
    strange = suspect.unexplained(transcript, {number for finding in live for number in finding.events()})
    strange = [one for one in strange if one.id not in unbuilt]
    live = without_past(live, strange, transcript)
    mark_echoes(live, strange)
    first, moments, own = _ranks(transcript, live, strange)
    unknown = own is not None and first is not None and any(one.rank == first.rank for one in strange)
    alone = first.rank if first is not None and unknown else None
    found = of_last_attempt(chains(live, rules, transcript, sort_key))
    if own is not None:
        found = led(found, own)
    kept, set_aside = select(found, transcript, strange, alone)
    diagnoses: tuple[Diagnosis, ...] = ()
    if kept:  # most texts that are looked at need no advice
        from torchdoctor.engine.answer import answer

        diagnoses = tuple(answer(chain, transcript, text_facts, rules, first, own) for chain in kept)
    met = [] if diagnoses else _caught(transcript, findings)
    outcome, who = _outcome(diagnoses, strange, met, transcript, first, written=not anchored)
    if who is not None:
        from torchdoctor.engine.resembles import with_resemblances

        who = replace(with_resemblances(who, rules), system=_system(transcript))
    failed = outcome is not Outcome.NO_FAILURE
    notes = [*transcript.notes, *foreign, *text_facts.notes, *_of_archive(transcript)]
    if transcript.form is Form.EMPTY and not notes:
        notes.append(_NOTHING)
    notes.extend(unbuilt.values())
    notes.extend(_of_what_was_got_over([one for one in findings if one not in live], transcript, failed))
    if kernel:
        notes.extend(_kernel_remarks(transcript, findings))
    gone_by, open_end = ([], []) if failed else _without_failure(transcript, met)
    return Report(
        outcome=outcome,
        source=transcript.sources,
        diagnoses=diagnoses,
        suspect=who,
        first_failure=first if failed else None,
        timeline=moments if failed else (),
        notes=tuple(dict.fromkeys((*gone_by, *notes, *open_end, *set_aside))),
        facts=(*text_facts.environment(), *facts.asked()),
        faults=tuple(text_facts.faults),
        got_over=bool(gone_by),
        open_end=bool(open_end),
    )


def _of_requests(findings: list[Finding], transcript: Transcript) -> list[Finding]:
    """Of a server that did not fail: what its answers to requests tell to have failed."""
    if suspect.has_failure(transcript):
        return []
    from torchdoctor.engine.no_failure import of_refused_requests  # most texts that are looked at failed

    return of_refused_requests(findings, transcript)


def _caught(transcript: Transcript, findings: list[Finding]) -> list[Event]:
    from torchdoctor.engine.no_failure import caught  # most texts that are looked at show what failed

    return caught(transcript, {number for one in findings for number in one.events()})


def _without_failure(transcript: Transcript, met: list[Event]) -> tuple[list[str], list[str]]:
    """What the run got over, and how far it came where nothing tells how it ended."""
    from torchdoctor.engine.no_failure import cut_off, got_over

    return got_over(met), cut_off(transcript)


def _of_archive(transcript: Transcript) -> tuple[str, ...]:
    """The remark on code that TorchScript ran as it was saved, and that failed."""
    mark = "Traceback of TorchScript, serialized code"
    ran = any(mark in event.text for event in transcript.events if not event.quoted)
    return (_ARCHIVED,) if ran else ()


def _tells_who(finding: Finding) -> bool:
    """Does it tell that somebody or something stopped the run, and not where its stack stood?"""
    return finding.rule.id == INTERRUPTED or finding.rule.family == "scheduler"


def _without_unbuilt(live: list[Finding], transcript: Transcript) -> tuple[list[Finding], dict[int, str]]:
    """The findings, less modules that are missing because their installation failed; and a note by event."""
    if not any(finding.rule.id == OWN_CODE for finding in live):
        return live, {}
    from torchdoctor.engine.unbuilt import WHY, without_unbuilt

    live, apart = without_unbuilt(live, transcript)
    return live, {number: note(finding, WHY) for finding in apart for number in finding.events()}


def _of_what_was_got_over(findings: list[Finding], transcript: Transcript, failed: bool) -> Iterator[str]:
    """A note each; of a run that failed none of what Python ignored in a destructor, which follows."""
    for one in findings:
        if not one.recovered:
            continue
        from torchdoctor.engine.no_failure import is_ignored

        if not (failed and all(is_ignored(item.event, transcript) for item in one.occurrences)):
            yield note(one, _gone_by(one, transcript))


def _gone_by(finding: Finding, transcript: Transcript) -> str:
    """What is said of a failure that was got over: of what a stop by hand ended, another start goes on."""
    stopped = any(
        (one.type or "").endswith("KeyboardInterrupt")
        for item in finding.occurrences
        for one in related(item.event, transcript)
    )
    if stopped:
        return "in an earlier run, or an earlier part of this one"
    return "the run continued after it"


def _has_anchored_failure(live: list[Finding], transcript: Transcript) -> bool:
    """Does what was printed hold a failure, or end well? Else what was written is read as well.

    A traceback whose message was cut off is no answer: a title above it may hold the message.
    """
    if transcript.ending is Ending.GOOD or any(one.rule.severity is Severity.FATAL for one in live):
        return True
    return suspect.has_failure(transcript) and not suspect.all_cut_off(transcript)


def _outcome(
    diagnoses: tuple[Diagnosis, ...],
    strange: list[Event],
    met: list[Event],
    transcript: Transcript,
    first: FirstFailure | None,
    *,
    written: bool,
) -> tuple[Outcome, Suspect | None]:
    """What came out, and for a failure that no rule knows, what looks most like its cause."""
    if diagnoses:
        return Outcome.DIAGNOSED, None
    if transcript.form is Form.BINARY:
        return Outcome.UNREADABLE, None
    if strange or suspect.has_failure(transcript):
        who = suspect.choose(strange, transcript, first.rank if first else None)
        who = who or suspect.named(transcript, failed=True) or suspect.fallback(transcript)
        return Outcome.UNRECOGNISED, who or suspect.written(transcript)
    told = suspect.named(transcript, failed=False) or (suspect.written(transcript) if written else None)
    told = told or suspect.ended(transcript)
    if told is None and transcript.ending is not Ending.GOOD:
        # as far as is known nothing ended it: what it met is what there is to ask about
        told = suspect.choose(met[-1:], transcript, None)
    return (Outcome.UNRECOGNISED, told) if told is not None else (Outcome.NO_FAILURE, None)


def _ranks(
    transcript: Transcript, live: list[Finding], strange: list[Event]
) -> tuple[FirstFailure | None, tuple[Moment, ...], Event | None]:
    """Who failed first, the timeline, and what that rank itself failed of; None where that is not told.

    What works this out is not even imported for a text of one process.
    """
    if not any(
        event.rank is not None
        or event.local_rank is not None
        or event.kind in _OF_MANY
        or event.text.startswith(SPAWNED)
        for event in transcript.events
    ):
        return None, (), None
    from torchdoctor.engine.first import first_failure, incident
    from torchdoctor.engine.timeline import timeline

    case = incident(transcript, live, strange)
    first = first_failure(case)
    own = case.own.get(first.rank) if first is not None and first.rank is not None else None
    return first, timeline(case, first), own.event if own is not None else None


def _with_kernel_log(transcript: Transcript) -> tuple[Transcript, tuple[str, ...]]:
    from torchdoctor.engine.kernel_log import joined

    return joined(transcript)


def _system(transcript: Transcript) -> str | None:
    """The operating system that the text shows, or that it is an image which is being built."""
    from torchdoctor.extract.context import builds_image

    if builds_image(transcript):
        return "dockerfile"
    name = log_value("log.platform", transcript)
    return name if isinstance(name, str) else None


def _kernel_remarks(transcript: Transcript, findings: list[Finding]) -> list[str]:
    from torchdoctor.engine.kernel_log import remarks

    return remarks(transcript, {number for finding in findings for number in finding.events()})
