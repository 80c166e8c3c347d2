"""What extractors find in messages: ``facts.cases`` holds the lines, and the facts that they give.

A case begins with ``=== NAMESPACE what it shows``. Each line of its input is an event, and the last is
asked, or the one numbered by ``event=N`` in the head; with ``text`` in the head the input is read as a log.
An event that is more than a line begins with ``@`` and its fields in JSON. Behind ``---`` stands a fact a
line: ``name = value`` or ``name unknown: what is missing``, ``absent: names``, and ``untold: names`` of which
nothing is said; ``:N`` is the line that says so where that is not the line of the event, ``:?`` a place that
is no line. Where nothing stands there, nothing is found. ``text`` as the namespace is what the text as a
whole says of its machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from case_files import table

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.extract import NAMESPACES, catalogue, context, dlopen, environment, meaning, of_event
from torchdoctor.extract.interpreter import interpreter_among, interpreter_of
from torchdoctor.intake import read_text
from torchdoctor.model import Event, EventKind, Fact, Frame, Relation, RelationKind, State, Transcript

_HEAD = re.compile(r"(?P<namespace>\w+)(?P<text> text)?(?: event=(?P<event>\d+))? (?P<name>.+)")


class Shown(NamedTuple):
    namespace: str
    name: str
    asked: int
    transcript: Transcript
    facts: list[str]


def event(number: int, lines: list[str]) -> Event:
    head, text = "{}", lines
    if lines[0].startswith("@ "):
        head, text = lines[0][2:], lines[1:]
    fields = json.loads(head)
    frames = tuple(Frame(*frame) for frame in fields.pop("frames", ()))
    relations = tuple(Relation(RelationKind(kind), of) for kind, of in fields.pop("relations", ()))
    kind = EventKind(fields.pop("kind", "log"))
    return Event(
        number, kind, "\n".join(text), "log", number + 1, number + 1,
        frames=frames, relations=relations, **fields,
    )  # fmt: skip


def events(lines: list[str]) -> Iterator[Event]:
    if not lines[0].startswith("@ "):
        yield from (event(number, [line]) for number, line in enumerate(lines))
        return
    heads = [number for number, line in enumerate(lines) if line.startswith("@ ")]
    for number, (start, end) in enumerate(zip(heads, [*heads[1:], len(lines)], strict=True)):
        yield event(number, lines[start:end])


def shown() -> Iterator[Shown]:
    for head, given, expected in table(Path(__file__).with_name("facts.cases")):
        found = _HEAD.fullmatch(head)
        assert found is not None, head
        if found["text"]:
            transcript = read_text("\n".join(given), "log")
        else:
            transcript = Transcript(("log",), tuple(events(given)))
        asked = int(found["event"] or len(transcript.events) - 1)
        yield Shown(found["namespace"], found["name"], asked, transcript, expected)


def told(fact: Fact, line: int) -> tuple[str, str]:
    """The name with its place, and what stands behind it."""
    place = re.fullmatch(r"text:log:(\d+)", fact.source)
    where = f":{place[1]}" if place else ":?"
    name = fact.name.partition(".")[2] + ("" if where == f":{line}" else where)
    if fact.state is State.KNOWN:
        return name, f"= {json.dumps(fact.value, ensure_ascii=False)}"
    return name, "absent" if fact.state is State.ABSENT else f"unknown: {fact.detail}"


def found(case: Shown) -> dict[str, str]:
    line = 0
    if case.namespace == "text":
        facts = list(environment.extract_text(case.transcript))
        assert {fact.name for fact in facts} <= set(catalogue())
        facts = [replace(fact, name=f"text.{fact.name}") for fact in facts]
    else:
        asked = case.transcript.events[case.asked]
        line = asked.line
        facts = list(of_event(case.namespace, asked, case.transcript))
        module = import_module(f"torchdoctor.extract.{NAMESPACES[case.namespace]}")
        assert {fact.name for fact in facts} <= set(module.FACTS)
    assert len({fact.name for fact in facts}) == len(facts)
    return dict(told(fact, line) for fact in facts)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.namespace} {case.name}") for case in shown()])
def test_facts(case: Shown) -> None:
    said = found(case)
    assert case.facts or not said, said
    for line in case.facts:
        kind, _, names = line.partition(": ")
        if kind == "untold":
            assert not {name.partition(":")[0] for name in said} & set(names.split(", ")), said
        elif kind == "absent":
            assert {said.get(name) for name in names.split(", ")} == {"absent"}, said
        else:
            name, _, value = line.partition(" ")
            assert said.get(name) == value, said


# A fact that nothing reads is not read out of a text either
RULES = Path(__file__).parents[2] / "rules"


def test_every_fact_of_a_message_is_read() -> None:
    readers = [
        *RULES.rglob("*.toml"),
        *(RULES.parent / f"torchdoctor/engine/{name}.py" for name in ("launch", "fixes")),
    ]
    rules = "\n".join(path.read_text(encoding="utf-8") for path in readers)
    modules = (import_module(f"torchdoctor.extract.{name}") for name in NAMESPACES.values())
    unread = {name for module in modules for name in module.FACTS if name not in rules}
    # `for` of a fix reads the facts of context.py
    assert {name for name in unread if not name.startswith("context.")} == set()


# Tables of ps and free, and the rules that read them
STOPPED = """\
RuntimeError: CUDA error: out of memory
$ ps aux
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.0   2484  1280 ?        Ss   09:01   0:00 /bin/sh
u          41273 12.0  3.1 98213404 8123404 pts/2 Tl  09:14   4:11 python train.py --bs 8
u          41991  0.0  0.0  10072  3456 pts/2    R+   09:40   0:00 ps aux
"""

FREE = """\
              total        used        free      shared  buff/cache   available
Mem:          251Gi       247Gi       1.1Gi        12Gi       2.9Gi       1.9Gi
Swap:            0B          0B          0B
"""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (STOPPED, "gpu-memory-held"),
        (f"{FREE}epoch 3 step 20 loss 0.4\n[1]+  Killed                  ./run.sh\n", "host-oom-killed"),
    ],
)
def test_a_table_that_a_rule_reads(rules: RuleSet, text: str, rule: str) -> None:
    assert [item.rule for item in diagnose(read_text(text), FactBook(None), rules).diagnoses] == [rule]


@pytest.mark.parametrize(
    ("file", "interpreter"),
    [
        ("/srv/venv/lib/python3.11/site-packages/torch/hub.py", "/srv/venv/bin/python"),
        ("/usr/local/lib/python3.10/site-packages/torch/hub.py", "/usr/local/bin/python"),
        # no name without a number there
        ("/opt/homebrew/lib/python3.11/site-packages/torch/hub.py", "/opt/homebrew/bin/python3.11"),
        (
            "/Library/Frameworks/Python.framework/Versions/3.12/lib/python3.12/site-packages/torch/hub.py",
            "/Library/Frameworks/Python.framework/Versions/3.12/bin/python3.12",
        ),
        ("/home/me/.local/lib/python3.10/site-packages/torch/hub.py", ""),
        # an installer's environment of conda, whatever its name
        (r"D:\installer_files\env\Lib\site-packages\torch\hub.py", r"D:\installer_files\env\python.exe"),
        (r"C:\me\miniconda3\envs\dl\Lib\site-packages\torch\hub.py", r"C:\me\miniconda3\envs\dl\python.exe"),
        (r"C:\Python311\Lib\site-packages\torch\hub.py", r"C:\Python311\python.exe"),
        # a virtual environment or an installed Python
        (r"G:\AI\lib\py311env\Lib\site-packages\torch\hub.py", ""),
    ],
)
def test_the_interpreter_of_a_file(file: str, interpreter: str) -> None:
    assert interpreter_of(file) == interpreter


def test_a_file_of_the_standard_library_shows_an_installed_python() -> None:
    torch, own = r"G:\AI\own\Lib\site-packages\torch\hub.py", r"G:\AI\own\Lib\runpy.py"
    assert interpreter_among([torch, own]) == r"G:\AI\own\python.exe"
    assert interpreter_among([torch, r"C:\Python311\Lib\runpy.py"]) == ""


def test_what_is_shown_of_a_fact_does_not_tell_when_it_is_unknown() -> None:
    shown = {name: meaning(name) for name in catalogue()}
    unsure = {name for name, words in shown.items() if re.search(r", (?:unknown|absent) \w+ ", f"{words} ")}
    assert not unsure


@pytest.mark.parametrize(
    ("text", "container"),
    [
        ("root@098b49afe624:/workspace# python train.py\nRuntimeError: No CUDA GPUs\n", "098b49afe624"),
        ("(base) me@0a1b2c3d4e5f:~$ nvidia-smi\nFailed to initialize NVML: Unknown Error\n", "0a1b2c3d4e5f"),
        ("root@098b49afe624:/# ls\nroot@198b49afe624:/# ls\nRuntimeError: CUDA error\n", None),
    ],
)
def test_the_container_of_a_prompt(text: str, container: str | None) -> None:
    transcript = read_text(text)
    told = [
        fact.value
        for fact in context.extract(transcript.events[-1], transcript)
        if fact.name == "context.container"
    ]
    assert told == ([container] if container else [])


@pytest.mark.parametrize(
    ("after", "alone"),
    [
        ('C:\\x> .\\python.exe -c "import torch; print(torch.__version__)"\n2.9.0+cpu\n', True),
        (
            'C:\\x> python -c "import torch; print(torch.__version__)"\nTraceback (most recent call last):\n',
            False,
        ),
        ("C:\\x> pip list\n2.9.0+cpu\n", False),
    ],
)
def test_torch_that_was_imported_alone(after: str, alone: bool) -> None:
    error = '[WinError 1114] x. Error loading "C:\\t\\torch\\lib\\c10.dll" or one of its dependencies.'
    transcript = read_text(f"OSError: {error}\n{after}")
    told = dict(found[:2] for found in dlopen.extract(transcript.events[0], transcript))
    assert told["loads_alone"] is alone


def test_what_root_installs_on_red_hats_systems_belongs_to_the_systems_python() -> None:
    packages = "/usr/local/{}/python3.9/site-packages/{}"
    paths = [packages.format("lib", "IPython/lib/pretty.py"), packages.format("lib64", "torch/_tensor.py")]
    assert interpreter_among(paths) == "/usr/bin/python3.9"
    assert interpreter_among(paths[:1]) == "/usr/local/bin/python"
