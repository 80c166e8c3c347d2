"""The engine on hand-made transcripts: matching, judging, linking, ranking, in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.catalog.rule import Condition
from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.conditions import holds
from torchdoctor.model import (
    Ending,
    Event,
    EventKind,
    Fact,
    FirstFailure,
    Form,
    Frame,
    Outcome,
    Reason,
    Relation,
    RelationKind,
    Report,
    Standing,
    Transcript,
)

RULES = {
    "label-range": """severity = "fatal"
role = "cause"
leads_to = ["device-assert", "watchdog"]
[[match]]
event = "device-assert"
text = "Assertion `t >= 0 && t < n_classes` failed"
""",
    "device-assert": """severity = "fatal"
role = "cause"
leads_to = ["watchdog"]
[[match]]
text = "CUDA error: device-side assert triggered"
""",
    "watchdog": """severity = "fatal"
role = "consequence"
leads_to = ["child-failed"]
[[match]]
text = "Watchdog caught collective operation timeout"
""",
    "child-failed": """severity = "info"
role = "consequence"
[[match]]
text = "multiprocessing.errors.ChildFailedError"
""",
    "worker-error": """severity = "fatal"
role = "cause"
[[match]]
text = "Caught {inner:word} in DataLoader worker process {worker:int}"
""",
    "too-big": """severity = "fatal"
role = "cause"
confirm = [{ fact = "match.want", at_least = 1000000000 }]
[[match]]
text = "CUDA out of memory. Tried to allocate {want:size}"
""",
    "small": """severity = "fatal"
role = "cause"
confirm = [{ fact = "match.want", below = 1000000 }]
[[match]]
text = "CUDA out of memory. Tried to allocate {want:size}"
""",
    "bad-launch": """severity = "fatal"
role = "cause"
[[match]]
text = "CUDA error: invalid configuration argument"
[[match]]
text = "CUDA error: invalid argument"
standing = "possible"
""",
    "needs-machine": """severity = "fatal"
role = "cause"
confirm = [{ fact = "limits.nofile", below = 2048 }]
[[match]]
text = "received 0 items of ancdata"
""",
    "needs-torch": """severity = "fatal"
role = "cause"
[[match]]
type = "IndexError"
text = "list index out of range"
where = [{ fact = "event.torch_tied", is = true }]
""",
    "general": """severity = "fatal"
role = "cause"
[[match]]
text = "Expected all tensors to be on the same device"
""",
    "special": """severity = "fatal"
role = "cause"
refines = ["general"]
[[match]]
text = "Expected all tensors to be on the same device"
where = [{ fact = "event.frames", contains = "torch/optim/" }]
""",
    "a-warning": """severity = "warning"
role = "cause"
[[match]]
text = "lr_scheduler.step() before optimizer.step()"
""",
    "twin-one": """severity = "fatal"
role = "cause"
[[match]]
text = "an utterly ambiguous message"
""",
    "twin-two": """severity = "fatal"
role = "cause"
[[match]]
text = "an utterly ambiguous message"
""",
}


def rules_of(root: Path, bodies: dict[str, str]) -> RuleSet:
    (root / "memory").mkdir()
    for rule_id, body in bodies.items():
        head = f'id = "{rule_id}"\nfamily = "memory"\ntitle = "{rule_id} title"\nwhy = "Because."\n'
        (root / "memory" / f"{rule_id}.toml").write_text(head + body, encoding="utf-8")
    return load(str(root))


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules_of(tmp_path_factory.mktemp("rules"), RULES)


def event(number: int, kind: EventKind, text: str, **more: object) -> Event:
    return Event(number, kind, text, "log", number + 1, number + 1, **more)  # type: ignore[arg-type]


def raised(number: int, type: str, text: str, **more: object) -> Event:
    return event(number, EventKind.EXCEPTION, text, type=type, headed=True, **more)


def line(number: int, text: str) -> Event:
    return event(number, EventKind.LOG, text)


def report_of(rules: RuleSet, *events: Event, machine: Machine | None = None, **more: object) -> Report:
    return diagnose(Transcript(("log",), events, **more), FactBook(machine), rules)  # type: ignore[arg-type]


def named(report: Report) -> list[tuple[str, Standing]]:
    return [(one.rule, one.standing) for one in report.diagnoses]


class Machine:
    def __init__(self, **facts: Fact) -> None:
        self.facts = {fact.name: fact for fact in facts.values()}
        self.asked: list[str] = []

    def names(self) -> tuple[str, ...]:
        return tuple(self.facts)

    def fetch(self, name: str) -> Fact:
        self.asked.append(name)
        return self.facts[name]


LABEL = "Loss.cu:245: nll_loss: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
USER = Frame("train.py", 12, "main", "loss = f(x)")
TORCH = Frame("/venv/site-packages/torch/optim/adam.py", 100, "step", package="torch")


CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
ANCDATA = raised(0, "RuntimeError", "received 0 items of ancdata")
LARGE = "CUDA out of memory. Tried to allocate 12.00 GiB"
DEVICES = "Expected all tensors to be on the same device, but found at least two devices"


def test_the_head_of_the_chain_is_the_answer_and_the_rest_stands_under_it(rules: RuleSet) -> None:
    hang = "[Rank 1] Watchdog caught collective operation timeout: ALLREDUCE"
    report = report_of(
        rules,
        raised(0, "RuntimeError", "CUDA error: device-side assert triggered"),
        event(1, EventKind.WATCHDOG, hang, rank=1),
        event(2, EventKind.LAUNCHER, CHILD),
        event(3, EventKind.DEVICE_ASSERT, LABEL),
    )
    (diagnosis,) = report.diagnoses
    assert (diagnosis.rule, diagnosis.evidence[0].line) == ("label-range", 4)
    assert [link.rule for link in diagnosis.leads_to] == ["device-assert", "watchdog", "child-failed"]


def test_the_inner_exception_comes_before_its_wrapper(rules: RuleSet) -> None:
    wraps = (Relation(RelationKind.WRAPS, 0),)
    inner = raised(0, "RuntimeError", "CUDA out of memory. Tried to allocate 2.00 GiB")
    text = "Caught RuntimeError in DataLoader worker process 0."
    report = report_of(rules, inner, raised(1, "RuntimeError", text, relations=wraps))
    assert report.diagnoses[0].rule == "too-big"
    assert [link.rule for link in report.diagnoses[0].leads_to] == ["worker-error"]


def test_a_wrapper_without_an_inner_match_is_the_diagnosis(rules: RuleSet) -> None:
    wraps = (Relation(RelationKind.WRAPS, 0),)
    inner = raised(0, "KeyError", "'mask_id'", frames=(USER,))
    text = "Caught KeyError in DataLoader worker process 3."
    outer = event(1, EventKind.EXCEPTION, text, type="KeyError", relations=wraps)
    (diagnosis,) = report_of(rules, inner, outer).diagnoses
    assert (diagnosis.rule, diagnosis.frame) == ("worker-error", USER)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(
            raised(0, "RuntimeError", "CUDA out of memory. Tried to allocate 12.00 MiB"),
            {("small", Standing.UNLIKELY), ("too-big", Standing.UNLIKELY)},
            id="a shared message is told apart by its numbers",
        ),
        pytest.param(
            line(0, "an utterly ambiguous message"),
            {("twin-one", Standing.POSSIBLE), ("twin-two", Standing.POSSIBLE)},
            id="two causes that claim the same words are both only possible",
        ),
        pytest.param(
            raised(0, "RuntimeError", "CUDA error: invalid configuration argument"),
            {("bad-launch", Standing.CONFIRMED)},
            id="words of its own confirm",
        ),
        pytest.param(
            raised(0, "RuntimeError", "CUDA error: invalid argument"),
            {("bad-launch", Standing.POSSIBLE)},
            id="words that other causes print too never confirm",
        ),
        pytest.param(
            raised(0, "IndexError", "list index out of range", frames=(USER, TORCH)),
            {("needs-torch", Standing.CONFIRMED)},
            id="a generic message with a frame of torch is of its rule",
        ),
        pytest.param(
            event(0, EventKind.EXCEPTION, DEVICES, type="RuntimeError", frames=(USER,)),
            {("general", Standing.CONFIRMED)},
            id="a rule that refines another leaves other events to it",
        ),
        pytest.param(
            event(0, EventKind.EXCEPTION, DEVICES, type="RuntimeError", frames=(USER, TORCH)),
            {("special", Standing.CONFIRMED)},
            id="a rule that refines another replaces it on the same event",
        ),
        pytest.param(
            event(0, EventKind.LAUNCHER, CHILD),
            {("child-failed", Standing.CONFIRMED)},
            id="a consequence without any cause is reported itself",
        ),
    ],
)
def test_one_event_gives_these_diagnoses(
    rules: RuleSet, one: Event, expected: set[tuple[str, Standing]]
) -> None:
    found = named(report_of(rules, one, ending=Ending.BAD))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_a_confirmed_cause_sets_its_unlikely_rival_aside(rules: RuleSet) -> None:
    report = report_of(rules, event(0, EventKind.EXCEPTION, LARGE, type="RuntimeError"))
    assert named(report) == [("too-big", Standing.CONFIRMED)]
    assert any("small" in note for note in report.notes)


@pytest.mark.parametrize(
    ("fact", "standing", "missing"),
    [
        (Fact.known("limits.nofile", 1024, "getrlimit"), Standing.CONFIRMED, ()),
        (Fact.known("limits.nofile", 65536, "getrlimit"), Standing.UNLIKELY, ()),
        (
            Fact.unknown("limits.nofile", Reason.NOT_PERMITTED),
            Standing.POSSIBLE,
            ("limits.nofile (not-permitted)",),
        ),
    ],
)
def test_a_fact_of_the_machine_confirms_weakens_or_is_missing(
    rules: RuleSet, fact: Fact, standing: Standing, missing: tuple[str, ...]
) -> None:
    (diagnosis,) = report_of(rules, ANCDATA, machine=Machine(fact=fact)).diagnoses
    assert (diagnosis.standing, diagnosis.missing) == (standing, missing)


def test_only_facts_that_a_matching_rule_names_are_asked_for(rules: RuleSet) -> None:
    machine = Machine(a=Fact.known("limits.nofile", 1), b=Fact.known("gpu.count", 8))
    report_of(rules, ANCDATA, machine=machine)
    assert machine.asked == ["limits.nofile"]


def test_a_generic_message_without_torch_is_nobodys(rules: RuleSet) -> None:
    report = report_of(rules, raised(0, "IndexError", "list index out of range", frames=(USER,)))
    assert (report.outcome, report.diagnoses) == (Outcome.UNRECOGNISED, ())
    assert (report.suspect.type, report.suspect.frame) == ("IndexError", USER)


def test_a_failure_that_no_rule_knows_sets_its_echoes_aside(rules: RuleSet) -> None:
    hang = "[Rank 1] Watchdog caught collective operation timeout"
    report = report_of(
        rules,
        raised(0, "KeyError", "'warmup'", rank=3, frames=(USER,)),
        event(1, EventKind.WATCHDOG, hang, rank=1),
        event(2, EventKind.LAUNCHER, CHILD),
    )
    assert (report.outcome, report.diagnoses) == (Outcome.UNRECOGNISED, ())
    assert (report.suspect.rank, report.first_failure.rank) == (3, 3)
    assert any("watchdog" in note for note in report.notes)


def test_a_warning_is_a_diagnosis_unless_the_run_ended_well(rules: RuleSet) -> None:
    warning = event(0, EventKind.WARNING, "UserWarning: lr_scheduler.step() before optimizer.step()")
    assert report_of(rules, warning).outcome is Outcome.DIAGNOSED
    well = report_of(rules, warning, ending=Ending.GOOD)
    assert well.outcome is Outcome.NO_FAILURE
    assert any("a-warning" in note for note in well.notes)


def test_quoted_and_recovered_failures_are_no_diagnoses(rules: RuleSet) -> None:
    assert report_of(rules, event(0, EventKind.LOG, LARGE, quoted=True)).outcome is Outcome.NO_FAILURE
    recovered = raised(0, "RuntimeError", LARGE, recovered=True)
    report = report_of(rules, recovered, ending=Ending.GOOD)
    assert report.outcome is Outcome.NO_FAILURE
    assert any("continued after it" in note for note in report.notes)


def test_code_of_an_archive_has_to_be_exported_again(rules: RuleSet) -> None:
    words = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript"
    archived = report_of(
        rules, raised(0, "RuntimeError", f"{words}, serialized code (most recent call last):")
    )
    assert any("exported again" in note for note in archived.notes)
    scripted = report_of(rules, raised(0, "RuntimeError", f"{words} (most recent call last):"))
    assert not any("exported again" in note for note in scripted.notes)


def test_binary_input_is_unreadable(rules: RuleSet) -> None:
    assert report_of(rules, form=Form.BINARY).outcome is Outcome.UNREADABLE


def test_the_first_failing_rank_comes_from_times_and_a_tie_is_said(rules: RuleSet) -> None:
    def first(second: int) -> FirstFailure:
        late = raised(0, "RuntimeError", LARGE, rank=5, time=f"2026-01-01T10:00:0{second}", host="a")
        soon = raised(1, "RuntimeError", LARGE, rank=2, time="2026-01-01T10:00:02", host="b")
        return report_of(rules, late, soon).first_failure

    apart = first(9)
    assert (apart.rank, apart.tie, apart.decided_by) == (2, (), "time stamps")
    assert first(3).tie == (2, 5)


def test_a_flood_of_equal_lines_is_looked_at_in_part_and_keeps_its_last(rules: RuleSet) -> None:
    report = report_of(rules, *(line(number, "an utterly ambiguous message") for number in range(5000)))
    assert report.diagnoses[0].evidence[0].line == 1


FATAL = 'severity = "fatal"\nrole = "cause"\n'


def test_a_chain_does_not_run_through_a_cause_that_is_not_in_the_text(tmp_path: Path) -> None:
    bodies = {
        "one": f'{FATAL}leads_to = ["between"]\n[[match]]\ntext = "first message"\n',
        "between": f'{FATAL}leads_to = ["two"]\n[[match]]\ntext = "message in between"\n',
        "two": f'{FATAL}[[match]]\ntext = "second message"\n',
    }
    found = rules_of(tmp_path, bodies)
    apart = [line(0, "second message"), line(1, "first message")]
    assert [one.rule for one in report_of(found, *apart).diagnoses] == ["two", "one"]
    linked = report_of(found, *apart, line(2, "message in between"))
    assert [one.rule for one in linked.diagnoses] == ["one"]


def test_an_untold_rule_out_does_not_keep_a_special_case_from_replacing_the_general(tmp_path: Path) -> None:
    same = '[[match]]\ntext = "the same message"\n'
    out = 'rule_out = [{ fact = "limits.nofile", at_least = 9 }]\n'
    bodies = {"general": FATAL + same, "special": f'{FATAL}refines = ["general"]\n{out}{same}'}
    found = rules_of(tmp_path, bodies)
    (diagnosis,) = report_of(found, line(0, "the same message")).diagnoses
    assert (diagnosis.rule, diagnosis.standing) == ("special", Standing.CONFIRMED)
    assert diagnosis.missing == ("limits.nofile (not-asked)",)
    known = Machine(fact=Fact.known("limits.nofile", 1024))
    (other,) = report_of(found, line(0, "the same message"), machine=known).diagnoses
    assert other.rule == "general"


@pytest.mark.parametrize(("dtype", "causes"), [("Half", ["head"]), ("Long", ["head", "own"])])
def test_a_value_decides_whether_a_failure_follows_from_another(
    tmp_path: Path, dtype: str, causes: list[str]
) -> None:
    bodies = {
        "head": f'{FATAL}leads_to = ["own"]\n[[match]]\ntext = "the first message"\n',
        "own": f'{FATAL}follows_if = [{{ fact = "match.dtype", is = "Half" }}]\n'
        '[[match]]\ntext = "refused for {dtype:word}"\n',
    }
    log = line(0, "the first message"), line(1, f"refused for {dtype}")
    assert [one.rule for one in report_of(rules_of(tmp_path, bodies), *log).diagnoses] == causes


def test_what_two_blocks_read_out_of_one_message_is_known_together(tmp_path: Path) -> None:
    body = (
        f'{FATAL}[[match]]\ntext = "the long message of the two"\n'
        '[[match]]\ntext = "between {one:int} and {other:int}"\n'
        '[[fix]]\ndo = "Bring {match.one} to {match.other}."\nrisk = "safe"\n'
    )
    message = line(0, "the long message of the two: between 3 and 4")
    (diagnosis,) = report_of(rules_of(tmp_path, {"two": body}), message).diagnoses
    assert [fix.do for fix in diagnosis.fixes] == ["Bring 3 to 4."]


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (Fact.known("a.b", "one two"), False),
        (Fact.known("a.b", "three"), True),
        (Fact.known("a.b", ("one",)), False),
        (Fact.absent("a.b", "text"), True),
        (Fact.unknown("a.b", Reason.NOT_ASKED), None),
    ],
)
def test_lacks_is_the_opposite_of_contains_any(fact: Fact, told: bool | None) -> None:
    assert holds(Condition("a.b", "lacks", ("one", "two")), fact) is told
    assert holds(Condition("a.b", "contains_any", ("one", "two")), fact) is (
        None if told is None else not told
    )
