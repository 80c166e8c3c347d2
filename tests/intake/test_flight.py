"""Flight records as events: captured ones of two ranks, the JSON form, and what is no record."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from torchdoctor.intake import IntakeError, read
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
