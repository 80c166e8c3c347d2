"""Files that want to run something, to be large, or to trip the reader: nothing runs, and each is named."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkpoint.broken import entries, good, packed

from torchdoctor.checkpoint import danger, pickle_machine
from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.report import examine
from torchdoctor.checkpoint.stretch import CheckpointError, InMemory
from torchdoctor.checkpoint.target import Target


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def hostile(marker: Path) -> dict[str, bytes]:
    """One pickle for each instruction that can run something; each makes the marker when it is loaded."""
    line = f"touch {marker}"
    call = text(line) + b"\x85"
    return {
        "REDUCE": b"\x80\x02cposix\nsystem\n" + call + b"R.",
        "STACK_GLOBAL": b"\x80\x04" + text("posix") + text("system") + b"\x93" + call + b"R.",
        "INST": b"(" + text(line) + b"iposix\nsystem\n.",
        "OBJ": b"\x80\x02(cposix\nsystem\n" + text(line) + b"o.",
        "NEWOBJ": b"\x80\x02csubprocess\nPopen\n)\x81}"
        + text("args")
        + text(line)
        + b"sb0cposix\nsystem\n"
        + call
        + b"R.",
        "NEWOBJ_EX": b"\x80\x04cbuiltins\nobject\n)}\x920cposix\nsystem\n" + call + b"R.",
        "BUILD": b"\x80\x02cfunctools\npartial\ncposix\nsystem\n\x85\x81(cposix\nsystem\n"
        + call
        + b"}NtbR.".replace(b"R", b"")
        + b"",
        "MEMO": b"\x80\x02cposix\nsystem\nq\x000h\x00" + call + b"R.",
        "APPENDS": b"\x80\x02]cposix\nsystem\n" + call + b"Ra.",
        "SETITEM": b"\x80\x02}" + text("x") + b"cposix\nsystem\n" + call + b"Rs.",
        "ADDITEMS": b"\x80\x04\x8f(cposix\nsystem\n" + call + b"R\x90.",
        "POP": b"\x80\x02cposix\nsystem\n" + call + b"R0N.",
        "eval": b"\x80\x02cbuiltins\neval\n" + text(f"__import__('os').system({line!r})") + b"\x85R.",
        "dotted": b"\x80\x04" + text("os") + text("path.os.system") + b"\x93" + call + b"R.",
    }


KINDS = sorted(hostile(Path("x")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["pickle", "archive"])
def test_a_hostile_pickle_does_nothing_and_is_named(kind: str, form: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    data = hostile(marker)[kind]
    if kind not in ("BUILD",):  # it really does something when it is loaded; BUILD sets a state only
        pickle.loads(data)
        for _ in range(100):
            if marker.exists():
                break
            time.sleep(0.01)
        marker.unlink()
    path = tmp_path / "model.pt"
    path.write_bytes(data if form == "pickle" else packed({"model/data.pkl": data, "model/version": b"3\n"}))
    report = examine([str(path)], Target())
    assert not marker.exists()
    first = report.diagnoses[0]
    assert first.rule == "checkpoint-dangerous-import"
    name = {"eval": "builtins.eval", "dotted": "os.path.os.system"}.get(kind, "posix.system")
    assert any(name in one.text for one in first.evidence)
    assert not any("add_safe_globals" in (fix.run or "") for one in report.diagnoses for fix in one.fixes)


def test_a_pickle_inside_of_a_pickle_is_looked_into(tmp_path: Path) -> None:
    inner = (
        pickle.dumps(0x1950A86A20F9469CFC6C, 2)
        + pickle.dumps(1001, 2)
        + pickle.dumps({}, 2)
        + b"\x80\x02cposix\nsystem\nN\x85R."
    )
    data = (
        b"\x80\x03ctorch.storage\n_load_from_bytes\nB" + len(inner).to_bytes(4, "little") + inner + b"\x85R."
    )
    path = tmp_path / "model.pkl"
    path.write_bytes(data)
    assert examine([str(path)], Target()).diagnoses[0].rule == "checkpoint-dangerous-import"


def test_common_classes_are_no_danger() -> None:
    for module, name in (
        ("argparse", "Namespace"), ("pathlib", "PosixPath"), (
            "numpy.core.multiarray", "_reconstruct"), ("_codecs", "encode"),
        ("torch.nn.modules.linear", "Linear"), ("collections", "OrderedDict"),
        ("__builtin__", "set"), ("types", "SimpleNamespace"),
    ):  # fmt: skip
        assert danger.meaning(module, name) == ""


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("nt", "system"), ("subprocess", "Popen"), ("builtins", "exec"), (
        "__builtin__", "eval"), ("socket", "socket"),
     ("torch.hub", "load"), (
         "urllib.request", "urlopen"), ("runpy", "run_path"), ("importlib", "import_module"),
     ("ctypes", "CDLL")],
)  # fmt: skip
def test_known_dangers(module: str, name: str) -> None:
    assert danger.meaning(module, name)


# -- sizes


def limited(code: str, *args: str) -> tuple[float, int]:
    """Runs it in a process of its own: seconds, and the most memory it took in KiB."""
    begun = time.monotonic()
    peak = "next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]"
    program = "import sys\n" + code + f"\nprint('KiB', {peak})"
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - begun, int(done.stdout.rsplit("KiB", 1)[1])


LOOK = "from torchdoctor.checkpoint.inspect import inspect\ncontents = inspect(sys.argv[1])\n"


def sparse_archive(path: Path, size: int) -> None:
    """An archive of torch.save with one storage of so many bytes, none of them on the disk; zip64."""
    import struct
    import zlib

    count = size // 4
    data = (
        b"\x80\x02}" + text("weight") + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
        + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"\x8a\x08" + count.to_bytes(8, "little")
        + b"tQK\x00\x8a\x08" + count.to_bytes(8, "little")
        + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRs."
    )  # fmt: skip
    directory = b""
    with open(path, "wb") as stream:
        for name, body, length in (
            ("m/data.pkl", data, len(data)),
            ("m/version", b"3\n", 2),
            ("m/data/0", b"", size),
        ):
            at = stream.tell()
            big = length > 0xFFFFFFFF
            field = 0xFFFFFFFF if big else length
            extra = struct.pack("<HHQQ", 1, 16, length, length) if big else b""
            crc = zlib.crc32(body)
            stream.write(
                struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 0, crc, field, field, len(name), len(extra))
                + name.encode()
                + extra
            )
            stream.write(body)
            stream.truncate(stream.tell() + length - len(body))
            stream.seek(0, 2)
            directory += struct.pack(
                "<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 0, crc, field, field, len(name), len(extra),
                0, 0, 0, 0, at
            ) + name.encode() + extra  # fmt: skip
        at = stream.tell()
        stream.write(directory)
        stream.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 3, 3, len(directory), at))
        stream.write(struct.pack("<4sLQL", b"PK\6\7", 0, at + len(directory), 1))
        stream.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 3, 3, len(directory), 0xFFFFFFFF, 0))


def test_fifty_gigabytes_take_two_seconds_and_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    sparse_archive(path, 50 * 10**9)
    seconds, peak = limited(
        LOOK + "assert not contents.findings, contents.findings\nassert contents.weights", str(path)
    )
    assert inspect(str(path)).weights.tensors["weight"].nbytes == 50 * 10**9  # type: ignore[union-attr]
    assert seconds < 2
    assert peak < 100 << 10


def test_fifty_gigabytes_of_the_old_format(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    data = good("2.13/legacy.pt")
    path.write_bytes(data)
    os.truncate(path, 50 * 10**9)
    seconds, peak = limited(LOOK, str(path))
    assert seconds < 2
    assert peak < 100 << 10


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02]" + b"]a" * 500_000 + b".",
        b"\x80\x02" + b"(" * 3_000_000,
        b"\x80\x02]q\x00" + b"".join(b"(" + b"h\x00" * 50 + b"lq\x00" for _ in range(2000)) + b".",
        b"\x80\x02" + b"N\x85" * 1 + b"\x85" * 1_000_000 + b".",
        b"\x80\x02}"
        + b"".join(b"(" + b"J%bK\x01" % n.to_bytes(4, "little") + b"u" for n in range(200_000)) + b".",
        b"\x80\x02}(" + b"".join(text(
            f"model.layers.{n}.weight") + b"K\x01" for n in range(1_000_000)) + b"u.",
        b"\x80\x04\x8d" + (1 << 62).to_bytes(8, "little") + b"x.",
        b"\x80\x02\x8b" + (1 << 31).to_bytes(4, "little") + b"x.",
        b"I" + b"9" * 4_000_000 + b"\n.",
        b"\x80\x02]" + b"2" * 2_000_000 + b".",
        b"\x80\x02" + b"".join(b"Nr" + n.to_bytes(4, "little") for n in range(0, 4_000_000_000, 4000)) + b".",
    ],
    ids=["lists", "marks", "memo-bomb", "deep-tuples", "many-dicts",
        "million-keys", "long-text", "long-number", "digits", "dup", "memo"],
)  # fmt: skip
def test_a_pickle_without_bounds_has_bounds_here(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(data)
    seconds, peak = limited(LOOK, str(path))
    assert seconds < 12
    assert peak < 160 << 10


def test_a_million_keys_are_told_as_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(
        b"\x80\x02}(" + b"".join(text(f"layers.{n}.weight") + b"K\x01" for n in range(1_000_000)) + b"u."
    )
    report = examine([str(path)], Target())
    assert report.not_checked
    assert "not read to its end" in report.not_checked[0].reason


def test_ten_thousand_tensors_are_read_whole(tmp_path: Path) -> None:
    one = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\nFloatStorage\n%s" + text("cpu")
        + b"K\x02tQK\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip
    body = b"".join(text(f"layers.{n}.weight") + one % text(str(n)) for n in range(10_000))
    pickle_ = pickle_machine.read(InMemory(b"\x80\x02}(" + body + b"u."))
    assert not pickle_.fault
    assert len(pickle_.value.pairs()) == 10_000  # type: ignore[attr-defined]


# -- what is no file


def test_what_is_no_file_is_told_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "folder").mkdir()
    for name in (tmp_path / "pipe.pt", Path("/dev/zero"), tmp_path / "folder", tmp_path / "nothing.pt"):
        with pytest.raises(CheckpointError):
            examine([str(name)], Target())


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(good())
    from torchdoctor.checkpoint import state_dicts

    real = state_dicts.find

    def grow(contents: object) -> None:
        with open(path, "ab") as stream:
            stream.write(b"more")
        real(contents)  # type: ignore[arg-type]

    monkeypatch.setattr(state_dicts, "find", grow)
    assert any("another process writes it" in note for note in inspect(str(path)).notes)


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    from torchdoctor.checkpoint.stretch import OpenFile

    path = tmp_path / "model.pt"
    path.write_bytes(good())
    with OpenFile(str(path)) as source:
        os.truncate(path, 100)
        assert len(source.read(0, source.size)) == 100


def test_zip64_and_bytes_before_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"#!/bin/sh\n" + packed(entries(good())))
    (found,) = examine([str(path)], Target()).diagnoses
    assert found.rule == "checkpoint-corrupt"
    assert "begins at byte 10" in found.evidence[1].text


def test_nothing_is_left_open(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(good())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        examine([str(path)], Target())
    assert len(os.listdir("/proc/self/fd")) == before
