"""The engine on hand-made transcripts: matching, judging, linking, ranking, in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.model import (
    Ending,
    Event,
    EventKind,
    Fact,
    Form,
    Frame,
    Outcome,
    Reason,
    Relation,
    RelationKind,
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


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    root = tmp_path_factory.mktemp("rules")
    (root / "memory").mkdir()
    for rule_id, body in RULES.items():
        head = f'id = "{rule_id}"\nfamily = "memory"\ntitle = "{rule_id} title"\nwhy = "Because."\n'
        (root / "memory" / f"{rule_id}.toml").write_text(head + body, encoding="utf-8")
    return load(str(root))


def event(number: int, kind: EventKind, text: str, **more: object) -> Event:
    return Event(number, kind, text, "log", number + 1, number + 1, **more)  # type: ignore[arg-type]


def transcript(*events: Event, **more: object) -> Transcript:
    return Transcript(("log",), events, **more)  # type: ignore[arg-type]


LABEL = "Loss.cu:245: nll_loss: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
USER = Frame("train.py", 12, "main", "loss = f(x)")
TORCH = Frame("/venv/site-packages/torch/optim/adam.py", 100, "step", package="torch")


def test_the_head_of_the_chain_is_the_answer_and_the_rest_stands_under_it(rules: RuleSet) -> None:
    report = diagnose(
        transcript(
            event(
                0,
                EventKind.EXCEPTION,
                "CUDA error: device-side assert triggered",
                type="RuntimeError",
                headed=True,
            ),
            event(
                1,
                EventKind.WATCHDOG,
                "[Rank 1] Watchdog caught collective operation timeout: ALLREDUCE",
                rank=1,
            ),
            event(2, EventKind.LAUNCHER, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"),
            event(3, EventKind.DEVICE_ASSERT, LABEL),
        ),
        FactBook(),
        rules,
    )
    assert [diagnosis.rule for diagnosis in report.diagnoses] == ["label-range"]
    assert [link.rule for link in report.diagnoses[0].leads_to] == [
        "device-assert",
        "watchdog",
        "child-failed",
    ]
    assert report.diagnoses[0].evidence[0].line == 4


def test_the_inner_exception_comes_before_its_wrapper(rules: RuleSet) -> None:
    inner = event(
        0,
        EventKind.EXCEPTION,
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        type="RuntimeError",
        headed=True,
    )
    outer = event(
        1,
        EventKind.EXCEPTION,
        "Caught RuntimeError in DataLoader worker process 0.",
        type="RuntimeError",
        headed=True,
        relations=(Relation(RelationKind.WRAPS, 0),),
    )
    report = diagnose(transcript(inner, outer), FactBook(), rules)
    assert report.diagnoses[0].rule == "too-big"
    assert [link.rule for link in report.diagnoses[0].leads_to] == ["worker-error"]


def test_a_wrapper_without_an_inner_match_is_the_diagnosis(rules: RuleSet) -> None:
    inner = event(0, EventKind.EXCEPTION, "'mask_id'", type="KeyError", headed=True, frames=(USER,))
    outer = event(
        1,
        EventKind.EXCEPTION,
        "Caught KeyError in DataLoader worker process 3.",
        type="KeyError",
        relations=(Relation(RelationKind.WRAPS, 0),),
    )
    (diagnosis,) = diagnose(transcript(inner, outer), FactBook(), rules).diagnoses
    assert diagnosis.rule == "worker-error"
    assert diagnosis.frame == USER


def test_a_shared_message_is_told_apart_by_its_numbers(rules: RuleSet) -> None:
    text = "CUDA out of memory. Tried to allocate 12.00 MiB"
    (diagnosis, *rest) = diagnose(
        transcript(event(0, EventKind.EXCEPTION, text, type="RuntimeError", headed=True)), FactBook(), rules
    ).diagnoses
    assert {diagnosis.rule, *(other.rule for other in rest)} == {"small", "too-big"}
    assert all(item.standing is Standing.UNLIKELY for item in (diagnosis, *rest))


def test_a_confirmed_cause_sets_its_unlikely_rival_aside(rules: RuleSet) -> None:
    text = "CUDA out of memory. Tried to allocate 12.00 GiB"
    report = diagnose(transcript(event(0, EventKind.EXCEPTION, text, type="RuntimeError")), FactBook(), rules)
    assert [(item.rule, item.standing) for item in report.diagnoses] == [("too-big", Standing.CONFIRMED)]
    assert any("small" in note for note in report.notes)


def test_two_causes_that_claim_the_same_words_are_both_only_possible(rules: RuleSet) -> None:
    report = diagnose(transcript(event(0, EventKind.LOG, "an utterly ambiguous message")), FactBook(), rules)
    assert {(item.rule, item.standing) for item in report.diagnoses} == {
        ("twin-one", Standing.POSSIBLE),
        ("twin-two", Standing.POSSIBLE),
    }


class Machine:
    def __init__(self, **facts: Fact) -> None:
        self.facts = {fact.name: fact for fact in facts.values()}
        self.asked: list[str] = []

    def names(self) -> tuple[str, ...]:
        return tuple(self.facts)

    def fetch(self, name: str) -> Fact:
        self.asked.append(name)
        return self.facts[name]


ANCDATA = event(0, EventKind.EXCEPTION, "received 0 items of ancdata", type="RuntimeError", headed=True)


@pytest.mark.parametrize(
    ("fact", "standing"),
    [
        (Fact.known("limits.nofile", 1024, "getrlimit"), Standing.CONFIRMED),
        (Fact.known("limits.nofile", 65536, "getrlimit"), Standing.UNLIKELY),
        (Fact.unknown("limits.nofile", Reason.NOT_PERMITTED), Standing.POSSIBLE),
    ],
)
def test_a_fact_of_the_machine_confirms_weakens_or_is_missing(
    rules: RuleSet, fact: Fact, standing: Standing
) -> None:
    (diagnosis,) = diagnose(transcript(ANCDATA), FactBook(Machine(fact=fact)), rules).diagnoses
    assert diagnosis.standing is standing
    if standing is Standing.POSSIBLE:
        assert diagnosis.missing == ("limits.nofile (not-permitted)",)


def test_only_facts_that_a_matching_rule_names_are_asked_for(rules: RuleSet) -> None:
    machine = Machine(a=Fact.known("limits.nofile", 1), b=Fact.known("gpu.count", 8))
    diagnose(transcript(ANCDATA), FactBook(machine), rules)
    assert machine.asked == ["limits.nofile"]


def test_a_generic_message_without_torch_is_nobodys(rules: RuleSet) -> None:
    plain = event(
        0, EventKind.EXCEPTION, "list index out of range", type="IndexError", headed=True, frames=(USER,)
    )
    report = diagnose(transcript(plain), FactBook(), rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert (report.suspect.type, report.suspect.frame) == ("IndexError", USER)
    tied = event(
        0,
        EventKind.EXCEPTION,
        "list index out of range",
        type="IndexError",
        headed=True,
        frames=(USER, TORCH),
    )
    assert diagnose(transcript(tied), FactBook(), rules).diagnoses[0].rule == "needs-torch"


def test_a_rule_that_refines_another_replaces_it_on_the_same_event(rules: RuleSet) -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices"
    plain = event(0, EventKind.EXCEPTION, text, type="RuntimeError", frames=(USER,))
    tied = event(0, EventKind.EXCEPTION, text, type="RuntimeError", frames=(USER, TORCH))
    assert [d.rule for d in diagnose(transcript(plain), FactBook(), rules).diagnoses] == ["general"]
    assert [d.rule for d in diagnose(transcript(tied), FactBook(), rules).diagnoses] == ["special"]


def test_a_failure_that_no_rule_knows_sets_its_echoes_aside(rules: RuleSet) -> None:
    report = diagnose(
        transcript(
            event(0, EventKind.EXCEPTION, "'warmup'", type="KeyError", headed=True, rank=3, frames=(USER,)),
            event(1, EventKind.WATCHDOG, "[Rank 1] Watchdog caught collective operation timeout", rank=1),
            event(2, EventKind.LAUNCHER, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"),
        ),
        FactBook(),
        rules,
    )
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.diagnoses == ()
    assert report.suspect.rank == 3
    assert report.first_failure.rank == 3
    assert any("watchdog" in note for note in report.notes)


def test_a_consequence_without_any_cause_is_reported_itself(rules: RuleSet) -> None:
    box = event(0, EventKind.LAUNCHER, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
    report = diagnose(transcript(box, ending=Ending.BAD), FactBook(), rules)
    assert [item.rule for item in report.diagnoses] == ["child-failed"]


def test_a_warning_is_a_diagnosis_unless_the_run_ended_well(rules: RuleSet) -> None:
    warning = event(0, EventKind.WARNING, "UserWarning: lr_scheduler.step() before optimizer.step()")
    assert diagnose(transcript(warning), FactBook(), rules).outcome is Outcome.DIAGNOSED
    well = diagnose(transcript(warning, ending=Ending.GOOD), FactBook(), rules)
    assert well.outcome is Outcome.NO_FAILURE
    assert any("a-warning" in note for note in well.notes)


def test_quoted_and_recovered_failures_are_no_diagnoses(rules: RuleSet) -> None:
    text = "CUDA out of memory. Tried to allocate 12.00 GiB"
    quoted = event(0, EventKind.LOG, text, quoted=True)
    assert diagnose(transcript(quoted), FactBook(), rules).outcome is Outcome.NO_FAILURE
    recovered = event(0, EventKind.EXCEPTION, text, type="RuntimeError", headed=True, recovered=True)
    report = diagnose(transcript(recovered, ending=Ending.GOOD), FactBook(), rules)
    assert report.outcome is Outcome.NO_FAILURE
    assert any("continued after it" in note for note in report.notes)


def test_binary_input_is_unreadable(rules: RuleSet) -> None:
    assert diagnose(transcript(form=Form.BINARY), FactBook(), rules).outcome is Outcome.UNREADABLE


def test_the_first_failing_rank_comes_from_times_and_a_tie_is_said(rules: RuleSet) -> None:
    text = "CUDA out of memory. Tried to allocate 12.00 GiB"

    def oom(number: int, rank: int, time: str, host: str) -> Event:
        return event(
            number,
            EventKind.EXCEPTION,
            text,
            type="RuntimeError",
            rank=rank,
            time=time,
            host=host,
            headed=True,
        )

    apart = transcript(oom(0, 5, "2026-01-01T10:00:09", "a"), oom(1, 2, "2026-01-01T10:00:02", "b"))
    first = diagnose(apart, FactBook(), rules).first_failure
    assert (first.rank, first.tie, first.decided_by) == (2, (), "time stamps")
    close = transcript(oom(0, 5, "2026-01-01T10:00:03", "a"), oom(1, 2, "2026-01-01T10:00:02", "b"))
    first = diagnose(close, FactBook(), rules).first_failure
    assert first.tie == (2, 5)


def test_a_flood_of_equal_lines_is_looked_at_in_part_and_keeps_its_last(rules: RuleSet) -> None:
    events = [event(n, EventKind.LOG, "an utterly ambiguous message") for n in range(5000)]
    report = diagnose(transcript(*events), FactBook(), rules)
    assert report.diagnoses[0].evidence[0].line == 1


def test_a_chain_does_not_run_through_a_cause_that_is_not_in_the_text(tmp_path: Path) -> None:
    bodies = {
        "one": 'role = "cause"\nleads_to = ["between"]\n[[match]]\ntext = "first message"\n',
        "between": 'role = "cause"\nleads_to = ["two"]\n[[match]]\ntext = "message in between"\n',
        "two": 'role = "cause"\n[[match]]\ntext = "second message"\n',
    }
    (tmp_path / "memory").mkdir()
    for rule_id, body in bodies.items():
        head = f'id = "{rule_id}"\nfamily = "memory"\ntitle = "{rule_id}"\nseverity = "fatal"\nwhy = "x"\n'
        (tmp_path / "memory" / f"{rule_id}.toml").write_text(head + body, encoding="utf-8")
    found = load(str(tmp_path))
    two = event(0, EventKind.LOG, "second message")
    one = event(1, EventKind.LOG, "first message")
    apart = diagnose(transcript(two, one), FactBook(), found)
    assert [diagnosis.rule for diagnosis in apart.diagnoses] == ["two", "one"]
    between = event(2, EventKind.LOG, "message in between")
    linked = diagnose(transcript(two, one, between), FactBook(), found)
    assert [diagnosis.rule for diagnosis in linked.diagnoses] == ["one"]


def test_an_untold_rule_out_does_not_keep_a_special_case_from_replacing_the_general(tmp_path: Path) -> None:
    general = 'role = "cause"\n[[match]]\ntext = "the same message"\n'
    special = (
        'role = "cause"\nrefines = ["general"]\nrule_out = [{ fact = "limits.nofile", at_least = 9 }]\n'
        '[[match]]\ntext = "the same message"\n'
    )
    (tmp_path / "memory").mkdir()
    for rule_id, body in {"general": general, "special": special}.items():
        head = f'id = "{rule_id}"\nfamily = "memory"\ntitle = "{rule_id}"\nseverity = "fatal"\nwhy = "x"\n'
        (tmp_path / "memory" / f"{rule_id}.toml").write_text(head + body, encoding="utf-8")
    found = load(str(tmp_path))
    (diagnosis,) = diagnose(
        transcript(event(0, EventKind.LOG, "the same message")), FactBook(), found
    ).diagnoses
    assert (diagnosis.rule, diagnosis.standing) == ("special", Standing.CONFIRMED)
    assert diagnosis.missing == ("limits.nofile (not-asked)",)
    known = Machine(fact=Fact.known("limits.nofile", 1024))
    (other,) = diagnose(
        transcript(event(0, EventKind.LOG, "the same message")), FactBook(known), found
    ).diagnoses
    assert other.rule == "general"


def test_words_that_other_causes_print_too_never_confirm(rules: RuleSet) -> None:
    own, shared = (
        event(0, EventKind.EXCEPTION, f"CUDA error: {words}", type="RuntimeError", headed=True)
        for words in ("invalid configuration argument", "invalid argument")
    )
    for one, standing in ((own, Standing.CONFIRMED), (shared, Standing.POSSIBLE)):
        (diagnosis,) = diagnose(transcript(one), FactBook(), rules).diagnoses
        assert (diagnosis.rule, diagnosis.standing) == ("bad-launch", standing)


@pytest.mark.parametrize(("dtype", "causes"), [("Half", ["head"]), ("Long", ["head", "own"])])
def test_a_value_decides_whether_a_failure_follows_from_another(
    tmp_path: Path, dtype: str, causes: list[str]
) -> None:
    bodies = {
        "head": 'leads_to = ["own"]\n[[match]]\ntext = "the first message"\n',
        "own": 'follows_if = [{ fact = "match.dtype", is = "Half" }]\n'
        '[[match]]\ntext = "refused for {dtype:word}"\n',
    }
    (tmp_path / "memory").mkdir()
    for rule_id, body in bodies.items():
        head = (
            f'id = "{rule_id}"\nfamily = "memory"\ntitle = "{rule_id}"\nseverity = "fatal"\nrole = "cause"\n'
        )
        (tmp_path / "memory" / f"{rule_id}.toml").write_text(f'{head}why = "x"\n{body}', encoding="utf-8")
    log = transcript(
        event(0, EventKind.LOG, "the first message"), event(1, EventKind.LOG, f"refused for {dtype}")
    )
    assert [one.rule for one in diagnose(log, FactBook(), load(str(tmp_path))).diagnoses] == causes


def test_what_two_blocks_read_out_of_one_message_is_known_together(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    body = (
        'id = "two"\nfamily = "memory"\ntitle = "two"\nseverity = "fatal"\nrole = "cause"\nwhy = "x"\n'
        '[[match]]\ntext = "the long message of the two"\n'
        '[[match]]\ntext = "between {one:int} and {other:int}"\n'
        '[[fix]]\ndo = "Bring {match.one} to {match.other}."\nrisk = "safe"\n'
    )
    (tmp_path / "memory" / "two.toml").write_text(body, encoding="utf-8")
    text = "the long message of the two: between 3 and 4"
    (diagnosis,) = diagnose(
        transcript(event(0, EventKind.LOG, text)), FactBook(), load(str(tmp_path))
    ).diagnoses
    assert [fix.do for fix in diagnosis.fixes] == ["Bring 3 to 4."]
