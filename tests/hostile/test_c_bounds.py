# ruff: noqa: E501  messages stand as programs print them, on one line
"""Inputs made to cost memory or time: each ends below 200 MiB and within 10 s of work."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import random
import struct
import subprocess
import sys
import tarfile
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from math import log2
from pathlib import Path
from time import process_time

import pytest

from hostile.measuring import MOST_BYTES, Run, measured, situations
from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake.budget import Budget
from torchdoctor.intake.packed import tar_members
from torchdoctor.intake.transcript import read_text
from torchdoctor.render.json import to_json

HELD = pytest.mark.held_before
LOG = b"step 1\nRuntimeError: CUDA error: device-side assert triggered\n"
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "job"
    made.mkdir()
    return made


def explained(folder: Path, name: str, data: bytes) -> Run:
    (folder / name).write_bytes(data)
    return measured(["explain", "--offline", name], folder)


# ------------------------------------------------------------------------------------------- runs of digits

NINES = "9" * 40_000
OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {want} GiB. GPU {gpu} has a total capacity "
    "of {total} GiB of which 1.00 GiB is free. Process {pid} has {held} GiB memory in use. Of the allocated memory "
    "20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)


def oom(**numbers: str) -> str:
    return OOM.format(**{"want": "2", "gpu": "0", "total": "24", "pid": "77", "held": "22"} | numbers)


DIGITS = {
    "size": oom(want=NINES),
    "total": oom(total=NINES),
    "gpu": oom(gpu=NINES),
    "process": oom(pid=NINES),
    "every-number": oom(want=NINES, gpu=NINES, total=NINES, pid=NINES, held=NINES),
    "points": oom(want="1." * 20_000),
    "size-of-400-digits": oom(want="9" * 400),
    "escaped-in-json": '{"level": "ERROR", "message": "CUDA out of memory. Tried to allocate '
    + "\\u0039" * 5_000
    + ' GiB"}\n',
    "figures-before": "".join(f"step {n} gpu_mem {NINES[:1900]}\n" for n in range(300)) + oom(),
    "epochs-before": "".join(f"Epoch {'9' * 3000} [{n}\n" for n in range(200)) + oom(),
    "shapes": "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param "
    f"with shape torch.Size([{', '.join(['9' * 100] * 60)}]) from checkpoint, the shape in current model is "
    f"torch.Size([{NINES}]).\n",
    "xid": f"[  100.0] NVRM: Xid (PCI:0000:3b:00): {NINES}, pid={NINES}, name=python\n",
    "exit-code": "="
    * 60
    + f"\nRoot Cause (first observed failure):\n[0]:\n  time      : 2024-01-01_00:00:00\n  host      : a\n"
    f"  rank      : {NINES} (local_rank: {NINES})\n  exitcode  : {NINES} (pid: {NINES})\n" + "=" * 60 + "\n",
    "srun-tasks": f"srun: error: gpu1: tasks {','.join(f'{n}-99999999' for n in range(3000))}: Exited with exit code 1\n",
    "watchdog": f"[rank{NINES}]:[E ProcessGroupNCCL.cpp:1] [Rank {NINES}] Watchdog caught collective operation "
    f"timeout: WorkNCCL(SeqNum={NINES}, OpType=ALLREDUCE, NumelIn={NINES}, NumelOut=1, Timeout(ms)={NINES}) ran for "
    f"{NINES} milliseconds before timing out.\n",
    "frames": f'Traceback (most recent call last):\n  File "a.py", line {NINES}, in f\n    x()\nValueError: {NINES}\n',
    "rank-tags": f"[rank{NINES}]: RuntimeError: x\n[1,{NINES}]<stderr>: b\n[default{NINES}]:c\n{NINES}: d\n",
    "numbers-in-a-row": "CUDA out of memory: " + "1 " * 100_000 + "\n",
    "windows-error": f"OSError: [WinError {NINES[:9000]}] The specified module could not be found. Error loading "
    '"C:\\x\\torch\\lib\\c10.dll" or one of its dependencies.\n',
    "nvidia-smi-q": f"Attached GPUs                             : {NINES}\n    Link Width\n        Max : {NINES}x\n",
}


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    from torchdoctor.catalog import load

    return load()


@pytest.mark.parametrize("name", DIGITS)
def test_digits(name: str, rules: RuleSet) -> None:
    begun = process_time()
    report = diagnose(read_text(DIGITS[name], "a.log"), FactBook(None), rules)
    text = to_json(report)
    assert process_time() - begun < 3.0
    assert report.faults == ()
    assert json.loads(text)["source"] == ["a.log"]


def test_digits_on_the_command_line(folder: Path) -> None:
    for name, text in DIGITS.items():
        (folder / f"{name}.log").write_text(text)
    names = [f"{name}.log" for name in DIGITS]
    run = measured(["explain", "--offline", "--each", "--format", "jsonl", *names], folder)
    run.held()
    assert (run.code, len(run.stdout.splitlines())) == (0, len(DIGITS))


# ------------------------------------------------------------------------------------------ a file that is cut

CUT = """
import os, sys, threading
from torchdoctor.intake import parallel, skim, scan
from torchdoctor.intake.transcript import read
skim.SPLIT_BYTES = 1
parallel.PART_BYTES = 1 << 20
real, path, keep = parallel._found, sys.argv[1], int(sys.argv[2])
def cut(*arguments):
    for number, one in enumerate(real(*arguments)):
        if number == 2:
            os.truncate(path, keep)
        yield one
parallel._found = cut
threading.Timer(8, os._exit, (9,)).start()
found = read([path], None, lambda: ("RuntimeError",))
print([note for note in found.notes if "changed while" in note])
os._exit(0)
"""


@pytest.mark.parametrize("keep", [0, 1, 40_000, 170_000])
def test_cut_while_it_is_read(folder: Path, keep: int) -> None:
    """What copytruncate does: windows are read again from a file that has no such lines any more."""
    words = random.Random(3)
    lines = (f"RuntimeError: {words.random()} w{words.randrange(10**6):x} failed\n" for _ in range(60_000))
    (folder / "a.log").write_text("".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", CUT, "a.log", str(keep)],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "changed while it was read" in done.stdout


# -------------------------------------------------------------------------------------------------- archives


def header(kind: bytes, size: int, name: str = "a.log") -> bytes:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, size
    return made.tobuf(tarfile.GNU_FORMAT)


def sparse(path: Path, head: bytes, size: int, tail: bytes = b"") -> None:
    """A file of a size that takes no room on the disk but for its ends."""
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
        file.seek(0, os.SEEK_END)
        file.write(tail)


def tarred(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in members.items():
            one = tarfile.TarInfo(name)
            one.size = len(data)
            archive.addfile(one, io.BytesIO(data))
    return made.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["long-name", "long-link", "pax", "pax-global"])
def test_tar_header_of_1_gib(folder: Path, kind: str) -> None:
    types = {"long-name": tarfile.GNUTYPE_LONGNAME, "long-link": tarfile.GNUTYPE_LONGLINK, "pax": tarfile.XHDTYPE,
             "pax-global": tarfile.XGLTYPE}  # fmt: skip
    sparse(folder / "a.tar", header(types[kind], 1 << 30), 1 << 30, tarred({"a.log": LOG}))
    measured(["explain", "--offline", "a.tar"], folder).held("damaged", "beyond any need")


def test_a_tar_header_is_bounded_where_tarfile_does_not_call_frombuf(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the releases of Python since the end of 2025, and those to which distributions carried the change."""

    def read(cls: type[tarfile.TarInfo], archive: tarfile.TarFile) -> tarfile.TarInfo:
        stream = archive.fileobj
        assert stream is not None
        found = tarfile.TarInfo.frombuf.__func__(cls, stream.read(512), "utf-8", "surrogateescape")  # type: ignore[attr-defined]
        found.offset = stream.tell() - 512
        return found._proc_member(archive)  # type: ignore[no-any-return]

    monkeypatch.setattr(tarfile.TarInfo, "fromtarfile", classmethod(read))
    for size, said in ((1 << 30, ["beyond any need"]), (5, [])):
        data = header(tarfile.GNUTYPE_LONGNAME, size) + b"a.log".ljust(512, b"\0") + tarred({"a.log": LOG})
        found = [member.reason for member in tar_members(io.BytesIO(data), Budget())]
        assert [note.rpartition(": ")[2][-15:] for note in found if note] == said


@pytest.mark.parametrize("kind", ["long-name", "pax-global"])
def test_tar_of_50_000_headers_in_a_row(folder: Path, kind: str) -> None:
    one = {
        "long-name": header(tarfile.GNUTYPE_LONGNAME, 5) + b"a.log".ljust(512, b"\0"),
        "pax-global": header(tarfile.XGLTYPE, 12) + b"12 path=a.l\n".ljust(512, b"\0"),
    }[kind]
    explained(folder, "a.tar", one * 50_000 + tarred({"a.log": LOG})).held("damaged", "beyond any need")


def test_tar_of_200_000_folders(folder: Path) -> None:
    one = header(tarfile.DIRTYPE, 0, "d")
    explained(folder, "a.tar", one * 200_000 + tarred({"a.log": LOG})).held("many entries", "no text log")


def test_tar_with_an_endless_map_of_holes(folder: Path) -> None:
    head = bytearray(header(tarfile.GNUTYPE_SPARSE, 0))
    head[482] = 1  # the map goes on in another block
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    block = bytearray(b"00000000001\0" * 42 + b"\1" * 8)
    explained(folder, "a.tar", bytes(head) + bytes(block[:504]) * 1 + b"\1" * 8 + (bytes(block[:504]) + b"\1" * 8) * 60_000
              ).held()  # fmt: skip


@HELD
def test_tar_with_a_negative_size(folder: Path) -> None:
    head = bytearray(header(tarfile.REGTYPE, 0, "b.log"))
    head[124:136] = b"\xff" * 10 + b"\xf0\x00"
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    explained(folder, "a.tar", tarred({"a.log": LOG})[:1024] + bytes(head) + bytes(4096)).held()


def test_archives_in_archives_have_one_budget(folder: Path) -> None:
    """Each of 6 archives unpacks to 120 MiB, which alone would be allowed."""
    line = b"epoch 1 loss 0.5 and so on for a while\n"
    inner = zipped({f"{n}.log": line * (40 * MIB // len(line)) for n in range(3)})
    run = explained(folder, "a.zip", zipped({f"{n}.zip.log": inner for n in range(6)}, zipfile.ZIP_STORED))
    run.held("not read")


@HELD
def test_archives_nested_without_end(folder: Path) -> None:
    data = tarred({"a.log": LOG})
    for level in range(40):
        data = tarred({"b.log": LOG, f"a{level}.tar.log": data})
    explained(folder, "a.tar", data).held("levels deep")


def test_zip_of_a_million_names(folder: Path) -> None:
    """The index alone is read into memory by the standard library."""
    entry = (
        struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        + b"a"
    )
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a"
    index = entry * 700_000
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, len(index), len(local), 0)
    explained(folder, "a.zip", local + index + end).held("index", "damaged")


@HELD
def test_gzip_bomb(folder: Path) -> None:
    explained(folder, "a.log.gz", gzip.compress(bytes(400 * MIB), 9)).held()


def test_gzip_of_500_000_empty_streams(folder: Path) -> None:
    explained(folder, "a.log.gz", gzip.compress(LOG) + gzip.compress(b"") * 500_000).held("streams in a row")


def test_gzip_with_an_endless_name(folder: Path) -> None:
    head = b"\x1f\x8b\x08\x08" + bytes(6)
    explained(folder, "a.log.gz", head + b"n" * (60 * MIB)).held()


@HELD
def test_bzip2_of_100_000_empty_streams(folder: Path) -> None:
    explained(folder, "a.log.bz2", bz2.compress(LOG) + bz2.compress(b"") * 100_000).held()


@HELD
def test_xz_in_xz_in_xz(folder: Path) -> None:
    """Each asks for its own dictionary of 64 MiB."""
    noise = random.Random(1).randbytes(MIB)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 * MIB}]
    lines = b"step\n" * 10 + noise[:1000].hex().encode() + b"\n"
    inner = lzma.compress(lines + zlib.compress(noise, 0), filters=filters)
    outer = lzma.compress(tarred({"a.log.xz": inner}), filters=filters)
    explained(folder, "a.tar.xz", lzma.compress(tarred({"a.tar.xz": outer}), filters=filters)).held()


@pytest.mark.parametrize("level", [25, 27, pytest.param(31, marks=HELD)])
def test_zstd_windows(folder: Path, level: int) -> None:
    zstandard = pytest.importorskip("zstandard")
    window = zstandard.ZstdCompressionParameters(window_log=level, hash_log=12, chain_log=12, search_log=1)
    noise = random.Random(1).randbytes(MIB)
    packer = zstandard.ZstdCompressor(compression_params=window).compressobj()
    data = b"".join(packer.compress(noise.hex().encode() + b"\n") for _ in range(70)) + packer.flush()
    explained(folder, "a.log.zst", data).held()


# --------------------------------------------------------------------------------------------- JSON and pickles


def many(value: bytes = b"{},") -> bytes:
    return value * (20 * MIB)


JSON_INPUTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "flight": ("rank_0", lambda: b'{"pg_config": {}, "entries": [' + many() + b"{}]}"),
    "flight-nested": ("rank_0", lambda: b'{"pg_config": {}, "entries": ' + b"[" * 300_000),
    "flight-digits": ("rank_0", lambda: b'{"pg_config": {}, "entries": [{"collective_seq_id": ' + b"9" * 300_000 + b"}]}"),
    "py-spy": ("dump.json", lambda: b'[{"pid": 1, "thread_id": 1, "frames": [' + many() + b"{}]}]"),
    "notebook": ("a.ipynb", lambda: b'{"cells": [' + many() + b"{}]}"),
    "notebook-lists": ("b.ipynb", lambda: b'{"cells": [' + many(b"[],") + b"[]]}"),
    "notebook-lines": (
        "c.ipynb",
        lambda: b'{"cells": [{"cell_type": "code", "outputs": [{"output_type": "stream", "text": "' + b"a\\n" * 5_000_000
        + b'"}]}]}',
    ),
    "notebook-wide": (
        "d.ipynb",
        lambda: b'{"cells": [{"cell_type": "code", "outputs": [{"text": "' + b"x" * (22 * MIB) + b'\xf0\x9f\x98\x80"}]}]}',
    ),
    "notebook-handlers": (
        "e.ipynb",
        lambda: b'{"cells": ['
        + b",".join(
            [b'{"cell_type": "code", "source": "' + b"except E as e:\\n print( " * 4_000 + b'", "outputs": [{"text": "a"}]}']
            * 100
        )
        + b"]}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", situations(JSON_INPUTS, held=("flight-nested", "flight-digits")))
def test_json(folder: Path, name: str) -> None:
    file, made = JSON_INPUTS[name]
    explained(folder, file, made()).held()


def test_a_notebook_of_pictures_is_read(folder: Path) -> None:
    picture = (random.Random(1).randbytes(3_000) * 8_000).hex()
    output = [{"output_type": "display_data", "data": {"image/png": picture}},
              {"output_type": "stream", "text": "RuntimeError: CUDA error: device-side assert triggered\n"}]  # fmt: skip
    book = {"cells": [{"cell_type": "code", "source": "", "outputs": output}]}
    run = explained(folder, "a.ipynb", json.dumps(book).encode())
    run.held("device-side assert")


@pytest.mark.parametrize("command", ["check", "explain", "facts"])
def test_facts_of_300_000_unknown_keys(folder: Path, command: str) -> None:
    facts = {f"torch.versoin{n}": n for n in range(300_000)}
    (folder / "facts.json").write_text(json.dumps(facts))
    (folder / "a.log").write_bytes(LOG)
    more = ["--offline", "a.log"] if command == "explain" else []
    run = measured([command, "--facts", "facts.json", *more], folder)
    run.held("unknown fact")
    assert run.code == 2
    assert len(run.stderr) < 20_000


def test_facts_of_60_mb_of_nothing(folder: Path) -> None:
    (folder / "facts.json").write_bytes(b'{"facts": [' + many() + b"{}]}")
    measured(["facts", "--facts", "facts.json"], folder).held("facts.json")


PICKLES: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"\x80\x02" + b"]" * (16 * MIB) + b".",
    "dictionaries": lambda: b"\x80\x02(" + b"}" * (16 * MIB) + b"l.",
    "tuples": lambda: b"\x80\x02" + b"K\x01\x85" * (5 * MIB) + b".",
    "memo": lambda: b"\x80\x02K\x01" + b"".join(b"r" + struct.pack("<I", n) for n in range(3_000_000)) + b".",
    "wide-texts": lambda: b"\x80\x02(" + (b"\x8c\x85" + "\U0001f600a".encode() * 26 + b"abc") * 120_000 + b"l.",
    "colliding-keys": lambda: b"\x80\x02}(" + b"".join(
        b"\x8a\x10" + (n * (2**61 - 1)).to_bytes(16, "little") + b"K\x01" for n in range(1, 60_000)
    ) + b"u.",
    "copies-of-a-list": lambda: b"\x80\x02(" + b"K\x01" * 500_000 + b"lq\x00" + b"(h\x00l" * 900_000 + b".",
}  # fmt: skip


@pytest.mark.parametrize("name", PICKLES)
def test_pickle(folder: Path, name: str) -> None:
    run = explained(folder, "rank_0", PICKLES[name]())
    run.held()
    assert run.code == 2


def entry(number: int, group: object, **more: object) -> dict[str, object]:
    return {
        "collective_seq_id": number, "process_group": group, "profiling_name": "nccl:all_reduce",
        "state": "scheduled", "is_p2p": False, "input_sizes": [[8]], "input_dtypes": ["Float"],
        "output_sizes": [[8]], "output_dtypes": ["Float"], "timeout_ms": 1000, "time_created_ns": 1,
        "frames": [{"name": "f", "filename": "/home/u/a.py", "line": 1}], **more,
    }  # fmt: skip


def shared_frames() -> dict[str, object]:
    frames = [
        {"name": "f", "filename": f"/usr/lib/python3/site-packages/torch/x{n}.py", "line": 1}
        for n in range(200)
    ]
    return {
        "pg_config": {},
        "pg_status": {},
        "entries": [entry(n, ["0", "p"], frames=frames) for n in range(60_000)],
    }


def laughs() -> dict[str, object]:
    value: object = "x"
    for _ in range(60):
        value = [value, value]
    return {"pg_config": {}, "pg_status": {}, "entries": [entry(1, None, pg_id=value, profiling_name=value)]}


RECORDS: dict[str, Callable[[], dict[str, object]]] = {
    "one-group-an-entry": lambda: {"entries": [entry(n, [f"g{n}", "p"]) for n in range(20_000)]},
    "a-wide-group-an-entry": lambda: {
        "pg_config": {f"g{n}": {"ranks": RANKS} for n in range(5_000)},
        "entries": [entry(n, [f"g{n}", "p"]) for n in range(5_000)],
    },
    "shared-frames": shared_frames,
    "nested-for-ever": laughs,
}
RANKS = list(range(60_000))


@pytest.mark.parametrize("name", RECORDS)
def test_flight_record(folder: Path, name: str) -> None:
    explained(folder, "rank_0", pickle.dumps(RECORDS[name](), 2)).held()


# ------------------------------------------------------------------------------------ lists of hosts and of GPUs


@pytest.mark.parametrize(
    "nodes",
    ["gpu[0-99999][0-99999]", "gpu" + "[0-9]" * 20_000, "gpu[0-9" + "9" * 5_000 + "]", "a," * 60_000, "gpu[0-²]"],
    ids=["two-ranges", "many-brackets", "digits", "commas", "superscript"],
)  # fmt: skip
def test_nodes(folder: Path, nodes: str) -> None:
    run = measured(["gate", "merge", "--nodes", nodes, "."], folder)
    run.held()
    assert len(run.stderr) < 4_000


@pytest.mark.parametrize("name", ["SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"])
def test_3_000_ranges_of_gpus(name: str) -> None:
    script = f"""
        import tracemalloc
        from torchdoctor.gate.expect import expectation
        from torchdoctor.gate.facts import Facts
        class Told(Facts):
            def __init__(self): pass
            def variables(self): return {{{name!r}: ",".join(f"{{n}}-{{n + 1000}}" for n in range(3000))}}
        tracemalloc.start()
        print(expectation(Told(), None, "").gpus, tracemalloc.get_traced_memory()[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    gpus, peak = map(int, done.stdout.split())
    assert gpus <= 1024
    assert peak < 10 * MIB


# --------------------------------------------------------------------------------------------------------- TOML

TOML = {
    "deep-list": "id = " + "[" * 100_000,
    "deep-table": "id = " + "{a=" * 100_000,
    "dotted": "a" + ".a" * 100_000 + " = 1",
    "dotted-heads": "\n".join(f"[a{n}{'.b' * 200}]" for n in range(2_000)),
    "quoted-dots": '"a"' + '."a"' * 50_000 + " = 1",
    "digits": "id = " + "9" * 100_000,
    "unknown-keys": "".join(f"titel{n} = 1\n" for n in range(60_000)),
    "large": "# " + "a" * (3 * MIB),
}


@pytest.mark.parametrize("name", TOML)
def test_rules(folder: Path, name: str) -> None:
    (folder / "rules" / "memory").mkdir(parents=True)
    (folder / "rules" / "memory" / "a.toml").write_text(TOML[name])
    (folder / "a.log").write_bytes(LOG)
    run = measured(["explain", "--offline", "--rules", "rules", "a.log"], folder)
    run.held("a.toml")
    assert run.code == 2
    assert len(run.stderr) < 40_000


@pytest.mark.parametrize("name", ["deep-list", "dotted", "digits"])
def test_policies(folder: Path, name: str) -> None:
    (folder / "policy.toml").write_text(TOML[name])
    run = measured(["gate", "--policy", "policy.toml", "--tier", "passive"], folder)
    run.held("policy.toml")


# ------------------------------------------------------------------------------------------- reports of children

CHILDREN = {
    "fifo": "import os; os.remove(path) if os.path.exists(path) else None; os.mkfifo(path)",
    "brackets": "open(path, 'w').write('[' * 200_000 + '\\n')",
    "nothings": "open(path, 'w').write('{}\\n' * 1_400_000)",
    "digits": "open(path, 'w').write('{\"fact\": \"a\", \"value\": ' + '9' * 5000 + '}\\n')",
    "device": "import os; os.symlink('/dev/zero', path)",
}  # fmt: skip


@pytest.mark.parametrize("name", CHILDREN)
def test_report_of_a_child(name: str) -> None:
    script = f"""
        import sys, tracemalloc
        from torchdoctor.probes.machine import Command
        from torchdoctor.probes.spawn import Running
        program = "import sys; path = sys.argv[-1]; " + {CHILDREN[name]!r}
        tracemalloc.start()
        found = Running(Command("a", (sys.executable, "-c", program), 20.0, reports=True)).finish()
        print(found.exit_code, tracemalloc.get_traced_memory()[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    code, peak = map(int, done.stdout.split())
    assert (code, peak < MOST_BYTES // 2) == (0, True)


# ---------------------------------------------------------------------------------------- logs made of errors only


def words(count: int) -> list[str]:
    made = random.Random(1)
    return ["".join(made.choice("abcdefghijklmnop") for _ in range(made.randint(3, 9))) for _ in range(count)]


HEADS = (
    "CUDA error:", "NCCL error", "RuntimeError:", "out of memory", "Killed", "Xid", "timeout", "failed",
    "Segmentation fault", "ValueError: ", "No such file or directory", "Permission denied",
)  # fmt: skip


def errors(size: int, vocabulary: list[str]) -> str:
    made, lines, written = random.Random(2), [], 0
    while written < size:
        a, b, c = (made.choice(vocabulary) for _ in range(3))
        lines.append(
            f"2024-01-01 00:00:{len(lines) % 60:02d} ERROR {a} {made.choice(HEADS)} {b} {made.choice(HEADS)} {c}\n"
        )
        written += len(lines[-1])
    return "".join(lines)


def tracebacks(size: int, vocabulary: list[str]) -> str:
    made, lines, written = random.Random(2), [], 0
    while written < size:
        a, b, c = (made.choice(vocabulary) for _ in range(3))
        lines.append(
            f'Traceback (most recent call last):\n  File "/home/u/{a}.py", line {len(lines) % 500}, in {b}\n    {c}()\n'
            f'  File "/home/u/{b}/{c}.py", line 7, in {a}\n    raise RuntimeError("{c}")\nRuntimeError: {a} {b} CUDA error: {c}\n'
        )
        written += len(lines[-1])
    return "".join(lines)


LOGS: dict[str, Callable[[int], str]] = {
    "errors": lambda size: errors(size, words(50_000)),
    "equal-errors": lambda size: errors(size, words(20)),
    "tracebacks": lambda size: tracebacks(size, words(50_000)),
    "equal-tracebacks": lambda size: tracebacks(size, words(20)),
    "noise": lambda size: "\n".join(random.Random(n).randbytes(60).hex() for n in range(size // 121)),
    "new-words": lambda size: "\n".join(f"{' '.join(map(hex, random.Random(n).sample(range(1 << 40), 6)))}"
                                        for n in range(size // 80)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_logs_of_errors_grow_in_proportion(folder: Path, name: str) -> None:
    """The exponent between 5 and 10 MiB, what a run takes in any case left out; 100 MB stay far below 10 s."""
    (folder / "none.log").write_bytes(LOG)
    idle = measured(["explain", "--offline", "none.log"], folder).seconds
    text = LOGS[name](10 * MIB)
    runs = [explained(folder, f"{size}.log", text[: size * MIB].encode()) for size in (5, 10)]
    for run in runs:
        run.held()
    less, more = (max(0.05, run.seconds - idle) for run in runs)
    assert log2(more / less) <= 1.2, f"{less:.2f} s, then {more:.2f} s"
