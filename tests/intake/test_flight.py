"""Flight records as events, and pickles of plain data, in which nothing is run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.intake import IntakeError, read, read_all
from torchdoctor.intake.plain_pickle import MAX_TEXT, PickleRefused, load
from torchdoctor.model import Event, EventKind

CAPTURED = Path(__file__).resolve().parent.parent / "incidents" / "flight"

FILES = [str(CAPTURED / f"rank_{rank}") for rank in (0, 1)]


def of(events: tuple[Event, ...], kind: EventKind) -> list[Event]:
    return [event for event in events if event.kind is kind]


def test_each_rank_says_in_which_collective_it_waits() -> None:
    events = read(FILES).events
    assert [(e.rank, e.text) for e in of(events, EventKind.LOG) if "last enqueued" in e.text] == [
        (rank, "flight record, group 0 (default_pg), ranks 0 1: last enqueued 8, last completed 7")
        for rank in (0, 1)
    ]
    done = [event.text for event in events if event.rank == 1 and "is completed" in event.text]
    assert [text.split(": ")[1].split(",")[0] for text in done] == [
        f"collective {number} {call} is completed"
        for number, call in enumerate(
            ("all_gather", "broadcast", "broadcast", "all_gather", "broadcast", "broadcast", "all_reduce"), 1
        )
    ]
    stacks = of(events, EventKind.STACK)
    assert [(event.rank, event.text) for event in stacks] == [
        (0, "flight record, group 0 (default_pg): collective 8 all_reduce is scheduled, "
            "Float [] -> Float [], timeout 25000 ms"),
        (1, "flight record, group 0 (default_pg): collective 8 broadcast is scheduled, "
            "Int [5] -> Int [5], timeout 25000 ms"),
    ]  # fmt: skip
    assert [(f.function, f.line, f.package) for f in stacks[0].frames] == [
        ("<module>", 23, ""), ("wrapper", 83, "torch"), ("all_reduce", 3068, "torch"),
    ]  # fmt: skip
    assert stacks[0].time == "2026-11-27T23:45:18.087097+00:00"


def test_json_says_the_same(tmp_path: Path) -> None:
    for rank, file in enumerate(FILES):
        value = pickle.loads(Path(file).read_bytes())
        (tmp_path / f"rank_{rank}").write_text(json.dumps(value, sort_keys=True))
    found = read([str(tmp_path / "rank_0"), str(tmp_path / "rank_1")]).events
    assert [(e.rank, e.text, e.frames) for e in found] == [
        (e.rank, e.text, e.frames) for e in read(FILES).events
    ]


def test_a_finished_record_shows_the_last_collective(tmp_path: Path) -> None:
    value = pickle.loads(Path(FILES[0]).read_bytes())
    value["entries"] = [entry for entry in value["entries"] if entry["state"] == "completed"]
    path = tmp_path / "rank_0"
    path.write_bytes(pickle.dumps(value, 2))
    (stack,) = of(read([str(path)]).events, EventKind.STACK)
    assert "collective 7 all_reduce is completed" in stack.text


def test_older_formats_have_group_numbers_only(tmp_path: Path) -> None:
    entry = {"pg_id": 3, "seq_id": 12, "profiling_name": "nccl:all_reduce", "state": "started", "frames": [],
             "input_sizes": [[4, 2]], "output_sizes": [[4, 2]]}  # fmt: skip
    path = tmp_path / "rank_5"
    path.write_bytes(pickle.dumps({"version": "1.1", "entries": [entry]}, 2))
    (stack,) = of(read([str(path)]).events, EventKind.STACK)
    assert stack.rank == 5
    assert stack.text.startswith(
        "flight record, group 3: collective 12 all_reduce is started, ? [4, 2] -> ? [4, 2]"
    )


@pytest.mark.parametrize(
    "value", [{"model": 1}, [1, 2], "text", {"entries": 7}], ids=["weights", "list", "text", "no list"]
)
def test_a_pickle_that_is_no_record_is_said_to_be_none(value: object, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pickle.dumps(value, 2))
    with pytest.raises(IntakeError, match="no flight record"):
        read([str(path)])


def test_other_json_stays_a_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text('{"message": "the key \\"pg_config\\" is missing", "pg_config": null}\nValueError: bad\n')
    assert [event.type for event in read([str(path)]).events][-1] == "ValueError"


# Pickles: plain data is read as pickle.load reads it, everything else is refused and nothing of it runs
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**90), 2**90)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_data_is_read_as_by_pickle(value: object, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert load(data) == value


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_bytes_of_old_protocols_need_a_call_and_are_refused(protocol: int) -> None:
    with pytest.raises(PickleRefused):
        load(pickle.dumps([b"x"], protocol))


def test_shared_values_stay_shared() -> None:
    inner = [1, 2]
    found = load(pickle.dumps({"a": inner, "b": inner}))
    assert isinstance(found, dict)
    assert found["a"] is found["b"]


class Shell:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self.command,)


class Popen:
    def __reduce__(self) -> tuple[object, ...]:
        return subprocess.Popen, (["touch", "/nonexistent/x"],)


class State:
    def __init__(self) -> None:
        self.x = 1


def hostile(marker: Path) -> dict[str, bytes]:
    touch = f"touch {marker}".encode()
    found = {
        f"reduce-{protocol}": pickle.dumps({"entries": [Shell(touch.decode())]}, protocol)
        for protocol in (2, 3, 4, 5)
    }
    found["popen"] = pickle.dumps(Popen())
    found["instance"] = pickle.dumps(State(), 2)
    found["global"] = b"\x80\x02cposix\nsystem\n(X%c\x00\x00\x00" % len(touch) + touch + b"tR."
    found["inst"] = b"\x80\x02(S'" + touch + b"'\niposix\nsystem\n."
    found["obj"] = b"\x80\x02(cposix\nsystem\nX%c\x00\x00\x00" % len(touch) + touch + b"o."
    found["stack-global"] = b"\x80\x04\x8c\x05posix\x8c\x06system\x93."
    found["persistent-id"] = b"\x80\x02Pnamed\n."
    found["extension"] = b"\x80\x02\x82\x01."
    found["build"] = b"\x80\x02}}b."
    return found


@pytest.mark.parametrize("name", sorted(hostile(Path("x"))))
def test_nothing_runs(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(hostile(marker)[name])
    with pytest.raises(IntakeError, match="nothing in it was run") as caught:
        read([str(path)])
    assert str(path) in str(caught.value)
    assert not marker.exists()


def test_the_refusal_says_what_stands_where() -> None:
    with pytest.raises(PickleRefused, match=r"GLOBAL at byte 2 \(posix\.system\)"):
        load(b"\x80\x02cposix\nsystem\n.")


def nested(depth: int) -> bytes:
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


def laughs(levels: int) -> bytes:
    """Lists of the list before, twice each: a few bytes that stand for 2 ** levels items."""
    parts = [b"]q" + bytes([n + 1]) + b"(h" + bytes([n]) + b"h" + bytes([n]) + b"e" for n in range(levels)]
    return b"\x80\x02]q\x00" + b"".join(parts) + b"."


BOMBS = {
    "depth": nested(200_000),
    "deep key": b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    "memo": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "huge text": b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"x.",
    "long text": b"\x80\x04X" + (MAX_TEXT + 1).to_bytes(4, "little") + b"x" * (MAX_TEXT + 1) + b".",
    "huge bytes": b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.",
    "huge integer": b"\x80\x02\x8b\xff\xff\xff\x7f" + b"\xff" * 100 + b".",
    "long decimal": b"\x80\x02I" + b"9" * 5_000 + b"\n.",
    "frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
    "cut off": b"\x80\x02}(X\x07\x00\x00\x00ver",
    "empty": b"\x80\x02",
    "no stop": b"\x80\x02" + b"N" * 100,
    "stack underflow": b"\x80\x02s.",
    "mark": b"\x80\x02(.",
    "itself": b"\x80\x02]q\x00h\x00a.",
    "laughs": laughs(60),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_bombs_cost_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace_rank_1"
    path.write_bytes(BOMBS[name])
    began = time.monotonic()
    with pytest.raises(IntakeError):
        read([str(path)])
    assert time.monotonic() - began < 5


def test_bombs_in_the_entries_of_a_record(tmp_path: Path) -> None:
    """A record whose parts are of every wrong kind, deep, shared or endless is read without a fault."""
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    endless: list[object] = []
    endless.append(endless)
    wrong: list[object] = [
        None, 7, "x", [], {}, {"frames": 5}, {"frames": [None, {"filename": 3, "line": "a", "name": []}]},
        {"process_group": []}, {"process_group": [[], []]}, {"input_sizes": [deep]}, {"input_sizes": endless},
        {"collective_seq_id": 2**80, "time_created_ns": -5},
        {"time_created_ns": 2**61, "profiling_name": "a\nb\x1b[2J"},
        {"state": deep, "pg_id": "7", "timeout_ms": True},
    ]  # fmt: skip
    path = tmp_path / "rank_0"
    path.write_bytes(pickle.dumps({"entries": wrong, "pg_config": endless, "pg_status": {"0": 4}}, 2))
    found = read([str(path)])
    assert found.events
    assert all("\n" not in event.text and "\x1b" not in event.text for event in found.events)


def test_a_hostile_file_does_not_stop_the_others(tmp_path: Path) -> None:
    bad, good = tmp_path / "rank_0", tmp_path / "rank_1"
    bad.write_bytes(pickle.dumps(Shell("true")))
    good.write_text("[rank1]: ValueError: bad\n")
    reading = read_all([str(bad), str(good)])
    assert [event.type for event in reading.transcript.events] == ["ValueError"]
    assert "nothing in it was run" in reading.transcript.notes[0]
