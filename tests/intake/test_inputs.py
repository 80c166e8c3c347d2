"""What a person names: folders, patterns, archives, pipes; hostile ones end with a note, the rest is done."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import socket
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchdoctor.intake import IntakeError, budget, inputs, read, read_all, skim, source
from torchdoctor.intake.inputs import Found, in_order, may_be_log
from torchdoctor.intake.shares import Measure

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "epoch 1\nRuntimeError: CUDA error: out of memory\n"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")


def types(*paths: Path) -> list[str | None]:
    return [event.type for event in read([str(path) for path in paths]).events if event.type]


def names(path: Path) -> list[str]:
    return [item.name[len(str(path)) + 1 :].replace(os.sep, "/") for item in Found([str(path)], None)]


def tar(path: Path, files: dict[str, bytes], mode: str = "w") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def zipped(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


class TestFolders:
    @pytest.mark.parametrize(
        "layout",
        [
            [
                "none_abc/attempt_0/0/stdout.log",
                "none_abc/attempt_0/0/error.json",
                "none_abc/attempt_0/10/stderr.log",
            ],
            ["slurm-4711_0.out", "slurm-4711_1.out", "slurm-4711.err"],
            ["logs/node0/rank_0.log", "logs/node1/rank_8.log"],
            ["deepspeed/worker-1.log", "deepspeed/worker-2.log"],
            ["lightning_logs/version_0/train.log"],
            ["session_latest/logs/worker-0a1b-01000000-4242.err", "session_latest/logs/raylet.out"],
            ["pods/trainer-0.txt", "pods/trainer-1.txt"],
            ["0_train.txt", "train/3_Run python train.py.txt"],
            ["var/log/messages-20260101.gz", "var/log/kern.log", "journal.json"],
        ],
    )
    def test_layouts_of_launchers(self, tmp_path: Path, layout: list[str]) -> None:
        for name in layout:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(LOG.encode()) if name.endswith(".gz") else LOG.encode())
        for name in ("hparams.yaml", "metrics.csv", "README.md", "model.pt", "train.py", ".hidden.log"):
            (tmp_path / name).write_text(LOG)
        assert sorted(names(tmp_path)) == sorted(layout)
        assert types(tmp_path) == ["RuntimeError"] * len(layout)

    def test_ranks_come_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        for rank in (0, 1, 2, 10, 11):
            (tmp_path / f"rank{rank}.log").write_text(LOG)
        assert names(tmp_path) == [f"rank{rank}.log" for rank in (0, 1, 2, 10, 11)]
        assert in_order("rank9.log") < in_order("rank10.log")

    def test_all_files_are_one_incident(self, tmp_path: Path) -> None:
        for rank in range(3):
            (tmp_path / f"rank{rank}.log").write_text(LOG)
        transcript = read([str(tmp_path)])
        assert [event.id for event in transcript.events] == list(range(6))
        assert [event.rank for event in transcript.events if event.type] == [0, 1, 2]
        assert len(transcript.sources) == 3

    def test_a_pattern_that_no_shell_expanded(self, tmp_path: Path) -> None:
        for rank in (10, 9):
            (tmp_path / f"rank{rank}.log").write_text(LOG)
        (tmp_path / "notes.txt").write_text(LOG)
        found = [Path(item.name).name for item in Found([str(tmp_path / "rank*.log")], None)]
        assert found == ["rank9.log", "rank10.log"]
        with pytest.raises(IntakeError, match="none that matches it as a pattern"):
            read([str(tmp_path / "*.err")])

    def test_a_file_named_twice_is_read_once(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text(LOG)
        assert types(path, path, tmp_path) == ["RuntimeError"]

    def test_a_file_name_with_brackets_is_no_pattern(self, tmp_path: Path) -> None:
        path = tmp_path / "run[1].log"
        path.write_text(LOG)
        assert types(path) == ["RuntimeError"]

    def test_binary_data_under_the_name_of_a_log(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        (tmp_path / "b.log").write_bytes(bytes(range(256)) * 20)
        reading = read_all([str(tmp_path)])
        assert len(reading.transcript.sources) == 1
        assert any("b.log" in note and "binary data" in note for note in reading.transcript.notes)

    def test_too_many_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inputs, "FOLDER_FILES", 3)
        for number in range(9):
            (tmp_path / f"{number}.log").write_text(LOG)
        transcript = read([str(tmp_path)])
        assert len(transcript.sources) == 3
        assert any("behind the first 3 logs" in note for note in transcript.notes)

    def test_too_deep(self, tmp_path: Path) -> None:
        deep = tmp_path.joinpath(*"abcdefghijklmnop")
        deep.mkdir(parents=True)
        (deep / "x.log").write_text(LOG)
        (tmp_path / "y.log").write_text(LOG)
        transcript = read([str(tmp_path)])
        assert len(transcript.sources) == 1
        assert any("deeper than 12 folders" in note for note in transcript.notes)

    def test_many_notes_of_a_kind_are_one(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        for number in range(30):
            (tmp_path / f"b{number}.log").write_bytes(bytes(range(256)))
        notes = read([str(tmp_path)]).notes
        assert len(notes) == 1
        assert "and 25 more" in notes[0]


@needs_posix
class TestHostileFolders:
    def test_links_out_of_the_folder_and_in_circles(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret.log").write_text("SecretError: do not read\n")
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "a.log").write_text(LOG)
        (folder / "latest.log").symlink_to(folder / "a.log")
        (folder / "out.log").symlink_to(outside / "secret.log")
        (folder / "passwd.log").symlink_to("/etc/passwd")
        (folder / "up").symlink_to(tmp_path)
        (folder / "loop").symlink_to(folder)
        (folder / "self.log").symlink_to(folder / "self.log")
        (folder / "gone.log").symlink_to(folder / "nowhere.log")
        transcript = read([str(folder)])
        assert [Path(name).name for name in transcript.sources] == ["a.log"]
        notes = "\n".join(transcript.notes)
        assert "out.log" in notes
        assert "leads out of the folder is not followed" in notes
        assert "leads nowhere, or in a circle" in notes
        assert not any(
            "SecretError" in event.text or event.type == "SecretError" for event in transcript.events
        )

    def test_a_named_link_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        (tmp_path / "b.log").symlink_to(tmp_path / "a.log")
        assert types(tmp_path / "b.log") == ["RuntimeError"]

    def test_pipes_sockets_and_devices_are_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        os.mkfifo(tmp_path / "pipe.log")
        with socket.socket(socket.AF_UNIX) as end:
            old = Path.cwd()
            os.chdir(tmp_path)  # the path of a socket must be short
            try:
                end.bind("socket.log")
            finally:
                os.chdir(old)
            transcript = read([str(tmp_path)])
        notes = "\n".join(transcript.notes)
        assert "pipe.log: is a named pipe" in notes
        assert "socket.log: is a socket" in notes
        assert len(transcript.sources) == 1

    def test_a_pipe_that_is_named_and_written_to(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: path.write_text(LOG))
        writer.start()
        assert types(path) == ["RuntimeError"]
        writer.join()

    def test_a_pipe_that_nobody_writes_to(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source, "PIPE_SECONDS", 0.05)
        path = tmp_path / "pipe"
        os.mkfifo(path)
        with pytest.raises(IntakeError, match="nothing was written"):
            read([str(path)])

    @pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux")
    def test_files_that_the_kernel_makes_up(self) -> None:
        assert read(["/proc/self/status"]).notes == ()

    def test_endless_devices(self) -> None:
        assert read(["/dev/zero"]).notes == ("/dev/zero: holds binary data, not a text log",)
        assert read(["/dev/null"]).events == ()

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_files_and_folders(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        (tmp_path / "b.log").write_text(LOG)
        (tmp_path / "c").mkdir()
        (tmp_path / "b.log").chmod(0)
        (tmp_path / "c").chmod(0)
        reading = read_all([str(tmp_path)])
        (tmp_path / "c").chmod(0o700)
        assert [error.reason for error in reading.unreadable] == ["permission denied"]
        assert any("cannot be listed" in note for note in reading.transcript.notes)

    def test_an_unreadable_file_among_readable_ones(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.log").write_text(LOG)
        (tmp_path / "b.log").write_text(LOG)

        def refuse(path: str, stdin: object) -> io.BufferedReader:
            if path.endswith("b.log"):
                raise IntakeError(path, "permission denied")
            return open(path, "rb")

        monkeypatch.setattr(inputs, "open_binary", refuse)
        reading = read_all([str(tmp_path)])
        assert [error.path for error in reading.unreadable] == [str(tmp_path / "b.log")]
        assert len(reading.transcript.sources) == 1
        assert reading.transcript.notes == (f"cannot read {tmp_path / 'b.log'}: permission denied",)

    def test_a_file_that_vanishes(self, tmp_path: Path) -> None:
        for name in ("a.log", "b.log"):
            (tmp_path / name).write_text(LOG)
        found = Found([str(tmp_path)], None)
        seen: list[str] = []
        for item in found:
            try:
                item.open().close()
                seen.append(Path(item.name).name)
            except IntakeError as error:
                found.unreadable.append(error)
            (tmp_path / "b.log").unlink(missing_ok=True)
        assert seen == ["a.log"]
        assert [(Path(error.path).name, error.reason) for error in found.unreadable] == [
            ("b.log", "no such file")
        ]


class Changing(io.BytesIO):
    """A file that becomes another as soon as the first bytes of it were read."""

    def __init__(self, path: Path, then: bytes) -> None:
        super().__init__(path.read_bytes())
        self.path = path
        self.then = then

    def read(self, size: int | None = -1) -> bytes:
        self.path.write_bytes(self.then)
        return super().read(size)

    def fileno(self) -> int:
        number = os.open(self.path, os.O_RDONLY)
        self.numbers = [*getattr(self, "numbers", []), number]
        return number

    def close(self) -> None:
        for number in getattr(self, "numbers", []):
            os.close(number)
        super().close()


@pytest.mark.parametrize("then", [b"", LOG.encode() + b"more\n"])
@pytest.mark.parametrize("size", [0, 200_000])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: bytes, size: int
) -> None:
    monkeypatch.setattr(skim, "measure_for", lambda files: Measure(whole=1 << 14))
    path = tmp_path / "a.log"
    path.write_bytes(b"step 1 of 9\n" * (size // 12) + LOG.encode())
    real = inputs.open_binary
    opened = 0

    def changing(name: str, stdin: object) -> object:
        nonlocal opened
        opened += 1
        return Changing(path, then) if opened == 2 else real(name, None)

    monkeypatch.setattr(inputs, "open_binary", changing)
    transcript = read([str(path)])
    assert [event.type for event in transcript.events if event.type] == ["RuntimeError"]
    assert any("changed while it was read" in note for note in transcript.notes)


class TestArchives:
    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("a.log.gz", gzip.compress),
            ("a.log.xz", lzma.compress),
            ("a.log.bz2", bz2.compress),
            ("a", lzma.compress),
        ],
    )
    def test_compressed_files(self, tmp_path: Path, name: str, pack: object) -> None:
        (tmp_path / name).write_bytes(pack(LOG.encode()))  # type: ignore[operator]
        assert types(tmp_path / name) == ["RuntimeError"]
        assert types(tmp_path) == (["RuntimeError"])

    def test_several_xz_streams_in_one_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.xz"
        path.write_bytes(lzma.compress(LOG.encode()) + b"\0" * 8 + lzma.compress(b"KeyError: 'lr'\n"))
        assert types(path) == ["RuntimeError", "KeyError"]

    @pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
    def test_damage_is_said_and_what_came_before_it_read(self, tmp_path: Path, pack: object) -> None:
        data = pack(LOG.encode() + os.urandom(50_000).hex().encode())  # type: ignore[operator]
        path = tmp_path / "a.log.x"
        path.write_bytes(data[: len(data) // 2])
        assert any("reading stopped" in note for note in read([str(path)]).notes)

    def test_zstd(self, tmp_path: Path) -> None:
        zstandard = pytest.importorskip("zstandard")
        path = tmp_path / "a.log.zst"
        path.write_bytes(zstandard.compress(LOG.encode()) * 2)
        assert types(path) == ["RuntimeError", "RuntimeError"]

    def test_zstd_without_a_module_for_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "zstandard", None)
        monkeypatch.setitem(sys.modules, "compression.zstd", None)
        (tmp_path / "a.log").write_text(LOG)
        path = tmp_path / "b.log.zst"
        path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 20)
        reading = read_all([str(tmp_path)])
        assert len(reading.transcript.sources) == 1
        (error,) = reading.unreadable
        assert "install torchdoctor[fast]" in error.reason
        with pytest.raises(IntakeError, match="zstd -d"):
            read([str(path)])

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
    def test_tar(self, tmp_path: Path, mode: str) -> None:
        path = tmp_path / ("logs.tar" + mode[1:].replace(":", "."))
        tar(
            path,
            {"run/rank0.log": LOG.encode(), "run/rank1.log": b"KeyError: 'lr'\n", "run/x.py": b"raise A"},
            mode,
        )
        transcript = read([str(path)])
        assert [event.rank for event in transcript.events if event.type] == [0, 1]
        assert transcript.sources == (f"{path}/run/rank0.log", f"{path}/run/rank1.log")

    def test_zip(self, tmp_path: Path) -> None:
        path = tmp_path / "logs.zip"
        path.write_bytes(zipped({"0_train.txt": LOG.encode(), "train/1_Set up job.txt": b"KeyError: 'lr'\n"}))
        assert types(path) == ["RuntimeError", "KeyError"]
        assert types(tmp_path) == ["RuntimeError", "KeyError"]

    def test_archives_in_archives(self, tmp_path: Path) -> None:
        inner = tmp_path / "inner.tar.gz"
        tar(inner, {"a.log": LOG.encode(), "b.log.gz": gzip.compress(b"KeyError: 'lr'\n")}, "w:gz")
        path = tmp_path / "outer.zip"
        path.write_bytes(zipped({"inner.tar.gz": inner.read_bytes(), "c.log": b"ValueError: bad\n"}))
        assert types(path) == ["RuntimeError", "KeyError", "ValueError"]

    def test_archives_nested_too_deep(self, tmp_path: Path) -> None:
        data = zipped({"deep.log": LOG.encode()})
        for _ in range(6):
            data = zipped({"next.zip": data, "here.log": LOG.encode()})
        path = tmp_path / "a.zip"
        path.write_bytes(data)
        transcript = read([str(path)])
        assert len(transcript.sources) == budget.NESTING
        assert any("levels deep" in note for note in transcript.notes)

    def test_no_path_leaves_the_archive(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tar"
        with tarfile.open(path, "w") as archive:
            for name in ("../../evil.log", "/etc/evil.log", "ok.log"):
                entry = tarfile.TarInfo(name)
                entry.size = len(LOG)
                archive.addfile(entry, io.BytesIO(LOG.encode()))
            link = tarfile.TarInfo("link.log")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
            pipe = tarfile.TarInfo("pipe.log")
            pipe.type = tarfile.FIFOTYPE
            archive.addfile(pipe)
        before = sorted(tmp_path.parent.rglob("*"))
        transcript = read([str(path)])
        assert transcript.sources == (f"{path}/ok.log",)
        notes = "\n".join(transcript.notes)
        assert "leads out of the archive" in notes
        assert "is a link" in notes
        assert "is a device or pipe" in notes
        assert sorted(tmp_path.parent.rglob("*")) == before

    @pytest.mark.parametrize(
        "pack", [gzip.compress, lzma.compress, bz2.compress, lambda data: zipped({"a.log": data})]
    )
    def test_a_bomb_is_cut_off(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
        monkeypatch.setattr(budget, "UNPACKED_FREE", 1 << 20)
        monkeypatch.setattr(budget, "UNPACKED_RATIO", 20)
        path = tmp_path / "bomb"
        path.write_bytes(pack(LOG.encode() + b"step 1 of 10\n" * 600_000))  # type: ignore[operator]
        transcript = read([str(path)])
        assert [event.type for event in transcript.events if event.type] == ["RuntimeError"]
        assert any("far more" in note for note in transcript.notes)
        assert transcript.bytes_read < 7 << 20

    def test_many_members(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "MEMBERS", 5)
        path = tmp_path / "a.zip"
        path.write_bytes(zipped({f"{number}.log": LOG.encode() for number in range(20)}))
        transcript = read([str(path)])
        assert len(transcript.sources) == 5
        assert any("behind the first 5 files" in note for note in transcript.notes)

    @pytest.mark.parametrize("cut", [30, 200, -40])
    def test_damaged_archives(self, tmp_path: Path, cut: int) -> None:
        (tmp_path / "ok.log").write_text(LOG)
        data = zipped({"a.log": LOG.encode() * 50, "b.log": LOG.encode()})
        (tmp_path / "a.zip").write_bytes(data[:cut])
        reading = read_all([str(tmp_path)])
        assert types(tmp_path / "ok.log") == ["RuntimeError"]
        assert reading.unreadable or reading.transcript.notes

    def test_an_archive_without_logs(self, tmp_path: Path) -> None:
        path = tmp_path / "weights.zip"
        path.write_bytes(zipped({"archive/data.pkl": b"x" * 99}))
        (tmp_path / "a.log").write_text(LOG)
        reading = read_all([str(tmp_path)])
        assert reading.unreadable == ()
        assert reading.transcript.notes == (f"not read: {path}: the archive holds no text log",)
        with pytest.raises(IntakeError, match="holds no text log"):
            read([str(path)])

    def test_an_encrypted_member(self, tmp_path: Path) -> None:
        data = bytearray(zipped({"a.log": LOG.encode(), "b.log": LOG.encode()}))
        at = data.rfind(b"PK\x01\x02")
        data[at + 8] |= 1
        path = tmp_path / "a.zip"
        path.write_bytes(bytes(data))
        transcript = read([str(path)])
        assert len(transcript.sources) == 1
        assert any("encrypted" in note for note in transcript.notes)

    def test_a_dictionary_that_asks_for_too_much_memory(self, tmp_path: Path) -> None:
        filters = [
            {
                "id": lzma.FILTER_LZMA2,
                "dict_size": 512 << 20,
                "mode": lzma.MODE_FAST,
                "mf": lzma.MF_HC3,
                "nice_len": 64,
            }
        ]
        path = tmp_path / "a.xz"
        path.write_bytes(lzma.compress(LOG.encode(), filters=filters))
        assert any("reading stopped" in note for note in read([str(path)]).notes)


class TestStreams:
    @staticmethod
    def endless() -> Iterator[bytes]:
        while True:
            yield b"y\n" * 50_000

    class Stream:
        """Standard input that never ends."""

        def __init__(self, data: bytes) -> None:
            self.data = data
            self.given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return (self.data * (size // len(self.data) + 1))[:size]

    def test_without_end_by_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(skim, "STREAM_BYTES", 4 << 20)
        stream = self.Stream(b"y\n")
        transcript = read(["-"], stream)  # type: ignore[arg-type]
        assert any("the end was not reached" in note for note in transcript.notes)
        assert stream.given < 8 << 20

    def test_without_end_by_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(skim, "STREAM_SECONDS", 0.2)
        transcript = read(["-"], self.Stream(b"step 1 loss 0.5\n"))  # type: ignore[arg-type]
        assert any("s of work" in note for note in transcript.notes)

    def test_without_line_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(skim, "STREAM_BYTES", 6 << 20)
        transcript = read(["-"], self.Stream(b"RuntimeError: x "))  # type: ignore[arg-type]
        assert any("the end was not reached" in note for note in transcript.notes)
        assert sum(len(event.text) for event in transcript.events) < 1 << 20


def test_names_of_logs() -> None:
    for name in (
        "train.log",
        "train.log.1",
        "train.log.3.gz",
        "stderr",
        "slurm-1.out",
        "a.zip",
        "b.tar.zst",
        "nohup.out",
    ):
        assert may_be_log(name), name
    for name in ("train.py", "a.pt", "data.csv", "x.tar.py", "report.html", "system.journal"):
        assert not may_be_log(name), name


class TestWrapped:
    TRACE = 'Traceback (most recent call last):\n  File "train.py", line 5, in main\n    f()\nKeyError: 7\n'

    def read(self, data: str | bytes) -> list[tuple[str, str | None, str | None, int]]:
        raw = data.encode() if isinstance(data, str) else data
        events = read(["-"], io.BytesIO(raw)).events
        return [(event.kind.value, event.type, event.time, event.line) for event in events]

    def test_an_error_file_of_torchelastic(self) -> None:
        report = {
            "message": {
                "message": "KeyError: 7",
                "extraInfo": {"py_callstack": self.TRACE, "timestamp": "1700000000"},
            }
        }
        assert self.read(json.dumps(report)) == [("exception", "KeyError", "2023-11-14T22:13:20Z", 1)]

    def test_a_journal_in_json(self) -> None:
        entries = [
            {"__REALTIME_TIMESTAMP": "1700000000000000", "_HOSTNAME": "n1", "_TRANSPORT": "kernel",
             "MESSAGE": "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus."},
            {"__REALTIME_TIMESTAMP": "1700000001000000", "_HOSTNAME": "n1", "SYSLOG_IDENTIFIER": "python",
             "_PID": "4242", "MESSAGE": self.TRACE},
            {"__REALTIME_TIMESTAMP": "1700000002000000", "_HOSTNAME": "n1", "SYSLOG_IDENTIFIER": "sh",
             "_PID": "1", "MESSAGE": [75, 105, 108, 108, 101, 100]},
        ]  # fmt: skip
        events = self.read("\n".join(json.dumps(entry) for entry in entries))
        assert [kind for kind, *_ in events] == ["kernel-log", "exception", "crash"]
        assert events[1][1:3] == ("KeyError", "2023-11-14T22:13:21Z")

    def test_a_github_actions_log(self) -> None:
        lines = [
            "##[group]Run python train.py",
            *self.TRACE.splitlines(),
            "##[error]Process completed with exit code 1.",
        ]
        text = "".join(f"2024-05-01T12:00:0{at}.1234567Z {line}\n" for at, line in enumerate(lines))
        assert ("exception", "KeyError", "2024-05-01T12:00:01.1234567Z", 2) in self.read(text)

    def test_an_issue_in_markdown(self) -> None:
        text = f"### Bug\n\nI get an error when I train my model:\n\n```\n{self.TRACE}```\n\n### Versions\n"
        found = [event for event in read(["-"], io.BytesIO(text.encode())).events if event.type]
        assert [(event.type, event.line, bool(event.quoted)) for event in found] == [("KeyError", 6, False)]

    def test_a_box_of_rich(self) -> None:
        text = (
            "╭─────────────────── Traceback (most recent call last) ────────────────────╮\n"
            "│ /home/u/train.py:10 in <module>                                          │\n"
            "│                                                                          │\n"
            "│ ❱ 10     main()                                                          │\n"
            "╰──────────────────────────────────────────────────────────────────────────╯\n"
            "KeyError: 7\n"
        )
        assert [name for _, name, *_ in self.read(text)] == ["KeyError"]


def test_a_notebook_is_known_by_what_stands_in_it(tmp_path: Path) -> None:
    """Saved under another name, or through a pipe."""
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["KeyError: 'x'"]}
    source = {"cell_type": "code", "source": ["raise ValueError('not this')"], "outputs": [error]}
    book = json.dumps({"cells": [source], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    for name in ("a.ipynb", "a.txt", "a.json"):
        (tmp_path / name).write_text(book, encoding="utf-8")
        whole = read([str(tmp_path / name)])
        assert [(one.type, one.text) for one in whole.events] == [("KeyError", "'x'")], name


class TestHostile:
    def test_a_tar_that_promises_a_pebibyte_ends_with_a_note(self, tmp_path: Path) -> None:
        entry = tarfile.TarInfo("x.log")
        entry.size = 1 << 50
        (tmp_path / "a_rank0.log").write_text("ValueError: bad\n")
        (tmp_path / "huge.tar").write_bytes(entry.tobuf() + b"step 1\n" * 100)
        found = read([str(tmp_path)])
        assert any("huge.tar" in note and "damaged" in note for note in found.notes)
        assert [event.type for event in found.events] == ["ValueError"]

    @pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux alone has it")
    def test_an_error_of_the_disk_is_said_and_the_rest_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text("ValueError: bad\n")
        with pytest.raises(IntakeError, match="cannot be read"):
            read(["/proc/self/mem"])

    def test_dumps_in_folders_and_archives_are_read(self, tmp_path: Path) -> None:
        record = (Path(__file__).parents[1] / "incidents" / "flight" / "rank_0").read_bytes()
        (tmp_path / "nccl_trace_rank_0").write_bytes(record)
        (tmp_path / "model_rank_1").write_bytes(pickle.dumps({"weights": [1, 2]}, 2))
        assert {event.rank for event in read([str(tmp_path)]).events} == {0}
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.writestr("node0/nccl_trace_rank_0", record)
        found = read([str(tmp_path / "all.zip")]).events
        assert any("collective 8 all_reduce is scheduled" in event.text for event in found)
