"""Tracebacks that are wrapped at a width, or stand in one line."""

from __future__ import annotations

from torchdoctor.intake import read_text
from torchdoctor.intake.unfold import Unfolder
from torchdoctor.model import Event, EventKind, RelationKind

OUTER = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 7, in <module>\n    for b in loader:\n'
)

INNER = '  File "/x/torch/utils/data/_utils/worker.py", line 358, in _worker_loop\n    data = fetch()\n'

USER = '  File "/w/data.py", line 46, in __getitem__\n    return self.items[i]\n'


def exceptions(text: str) -> list[Event]:
    return [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]


def wraps(event: Event) -> list[int]:
    return [relation.event for relation in event.relations if relation.kind is RelationKind.WRAPS]


def test_a_dataloader_worker() -> None:
    outer, inner = exceptions(
        f"{OUTER}KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent "
        f"call last):\n"
        f"{INNER}{USER}KeyError: 'mask'\n\n"
    )
    assert (outer.type, outer.text) == ("KeyError", "Caught KeyError in DataLoader worker process 0.")
    assert wraps(outer) == [inner.id]
    assert (inner.type, inner.text, inner.line) == ("KeyError", "'mask'", 5)
    assert [frame.function for frame in inner.frames] == ["_worker_loop", "__getitem__"]
    assert [frame.function for frame in outer.frames] == ["<module>"]
    assert outer.end_line == inner.end_line == 10


def test_a_chain_inside_the_worker() -> None:
    outer, first, second = exceptions(
        f"{OUTER}KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent "
        f"call last):\n"
        f'  File "/x/pandas/core/indexes/base.py", line 2898, in get_loc\n    return x\nKeyError: 1\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        f"Traceback (most recent call last):\n{INNER}{USER}KeyError: 2\n"
    )
    assert wraps(outer) == [second.id]
    assert [(r.kind, r.event) for r in second.relations] == [(RelationKind.CAUSE, first.id)]


def test_a_chain_outside_the_worker() -> None:
    outer, _, last = exceptions(
        f"{OUTER}KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent "
        f"call last):\n"
        f"{INNER}{USER}KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
        f"{OUTER}RuntimeError: gave up\n"
    )
    assert [(r.kind, r.event) for r in last.relations] == [(RelationKind.CONTEXT, outer.id)]


def test_the_wrapper_of_torch_before_1_2() -> None:
    outer, inner = exceptions(
        f"{OUTER}IndexError: Traceback (most recent call last):\n{INNER}{USER}IndexError: list index\n"
    )
    assert (outer.type, outer.text, wraps(outer)) == ("IndexError", "", [inner.id])
    assert (inner.text, inner.frames[-1].file) == ("list index", "/w/data.py")


def test_spawn() -> None:
    outer, inner = exceptions(
        f"{OUTER}torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the "
        f"following error:\n"
        f"Traceback (most recent call last):\n{USER}ValueError: Must flatten\n"
    )
    assert outer.text == "-- Process 1 terminated with the following error:"
    assert (wraps(outer), inner.text) == ([inner.id], "Must flatten")


def test_a_remote_traceback_of_a_pool() -> None:
    remote, inner, last = exceptions(
        f'multiprocessing.pool.RemoteTraceback: \n"""\nTraceback (most recent call last):\n{USER}KeyError: '
        f'\'quince\'\n"""\n\n'
        f"The above exception was the direct cause of the following exception:\n\n{OUTER}KeyError: 'quince'\n"
    )
    assert (remote.type, wraps(remote)) == ("multiprocessing.pool.RemoteTraceback", [inner.id])
    assert (inner.type, inner.text) == ("KeyError", "'quince'")
    assert [(r.kind, r.event) for r in last.relations] == [(RelationKind.CAUSE, remote.id)]


def test_ray() -> None:
    outer, inner = exceptions(
        f"ray.exceptions.RayTaskError(ImportError): ray::Worker.init() (pid=20931, "
        f"ip=10.0.0.5)\n{USER}ImportError: flash_attn\n"
    )
    assert (outer.type, outer.text) == (
        "ray.exceptions.RayTaskError",
        "ray::Worker.init() (pid=20931, ip=10.0.0.5)",
    )
    assert wraps(outer) == [inner.id]
    assert (inner.type, inner.frames[0].file, inner.headed) == ("ImportError", "/w/data.py", True)


def test_a_backend_that_raised() -> None:
    cause, outer, inner = exceptions(
        f"{OUTER}RuntimeError: no triton\n\nThe above exception was the direct cause of the following "
        f"exception:\n\n"
        f"{OUTER}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: no "
        f"triton\n"
    )
    assert sorted((r.kind.value, r.event) for r in outer.relations) == [
        ("cause", cause.id),
        ("wraps", inner.id),
    ]
    assert (inner.type, inner.text) == ("RuntimeError", "no triton")


def test_the_compiler_errors_in_the_message_of_a_build() -> None:
    events = read_text(
        f"{OUTER}RuntimeError: Error building extension 'm': [1/2] g++ -c main.cpp -o main.o \nFAILED: "
        f"main.o \n"
        "/c/main.cpp:3:18: error: 'undefined_thing' was not declared\n    3 | int go(){ return "
        "undefined_thing; }\n"
        "      |                  ^~~~~~~~~~~~~~~\nninja: build stopped: subcommand failed.\n"
    ).events
    error, build = events[0], events[1]
    assert (error.kind, build.kind) == (EventKind.EXCEPTION, EventKind.BUILD)
    assert build.text == "/c/main.cpp:3:18: error: 'undefined_thing' was not declared"
    assert wraps(error)[0] == build.id
    assert "not declared" in error.text
    assert error.text.endswith("ninja: build stopped: subcommand failed.")


GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/w/x.py", line 9, in <module>
  |     raise ExceptionGroup("eg", errors)
  | ExceptionGroup: eg (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/w/y.py", line 3, in f
    |     g()
    | ValueError: 1
    +---------------- 2 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/w/z.py", line 4, in h
    |     raise ExceptionGroup("in", [KeyError("k")])
    | ExceptionGroup: in (1 sub-exception)
    +-+---------------- 1 ----------------
      | KeyError: 'k'
      +------------------------------------
done
"""


def test_an_exception_group_and_its_members() -> None:
    group, value, inner, key = exceptions(GROUP)
    assert (group.type, group.text, group.frames[0].line) == ("ExceptionGroup", "eg (2 sub-exceptions)", 9)
    assert (value.type, value.text, value.frames[0].code) == ("ValueError", "1", "g()")
    assert (inner.type, inner.frames[0].line) == ("ExceptionGroup", 4)
    assert (key.type, key.text) == ("KeyError", "'k'")
    assert read_text(GROUP).events[-1].text == "done"


# Tracebacks in one line, and the errors of cells as an editor copies them
FOLDED = (
    'it died: Traceback (most recent call last): File "/srv/a.py", line 8, in <module> main() '
    'File "/srv/a.py", line 4, in main out = head(x) RuntimeError: sizes differ: 3 and 4'
)


def test_a_folded_traceback_gets_its_lines_back() -> None:
    assert Unfolder().take(FOLDED) == [
        "it died:",
        "Traceback (most recent call last):",
        '  File "/srv/a.py", line 8, in <module>',
        "    main()",
        '  File "/srv/a.py", line 4, in main',
        "    out = head(x)",
        "RuntimeError: sizes differ: 3 and 4",
    ]


def test_one_that_was_broken_inside_is_put_together() -> None:
    unfolder = Unfolder()
    first, second = FOLDED.split(" File ", 1)[0], 'File "/srv/a.py", line 4, in main out = head(x)'
    head = f'{first} File "/srv/a.py", line 8, in <module> main() {second}'
    assert unfolder.take(head) == []
    lines = unfolder.take("RuntimeError: sizes differ: 3 and 4")
    assert lines is not None
    assert lines[-1] == "RuntimeError: sizes differ: 3 and 4"
    assert unfolder.take("next line") is None


def test_one_that_never_ends_is_given_back_at_a_blank_line_and_at_the_end() -> None:
    head = FOLDED.partition(" RuntimeError")[0]
    unfolder = Unfolder()
    assert unfolder.take(head) == []
    given = unfolder.take("")
    assert given is not None
    assert given[-1] == ""
    assert '  File "/srv/a.py", line 4, in main' in given
    assert unfolder.take(head) == []
    assert unfolder.rest()[-1] == "    out = head(x)"
    assert unfolder.rest() == []


def test_other_lines_are_left_alone() -> None:
    unfolder = Unfolder()
    for line in (
        "Traceback (most recent call last):",
        '  File "/srv/a.py", line 8, in <module>',
        "{",
        '{"a": 1}',
        "",
    ):
        assert unfolder.take(line) is None
