"""A machine saved and replayed: the same facts come out, names do not, and mistakes in a file are told."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_reports
from probe_machines import Environment

from torchdoctor.model import Fact, Reason, State
from torchdoctor.probes import FACTS, RecordingError
from torchdoctor.probes.pseudonyms import Pseudonyms
from torchdoctor.probes.recorded import FactsFileError, all_facts, load_facts
from torchdoctor.probes.recording import PRIVATE, SCHEMA, RecordedSource, save, to_text
from torchdoctor.probes.source import ProbeSource
from torchdoctor.render.json import to_json

MACHINES = sorted((Path(__file__).parents[2] / "fixtures" / "machines").glob("*.json"))


def written(folder: Path, **content: Any) -> str:
    path = folder / "machine.json"
    path.write_text(json.dumps({"schema": SCHEMA, **content}), encoding="utf-8")
    return str(path)


def test_saved_and_replayed(
    environment: Environment, look: Callable[..., ProbeSource], tmp_path: Path
) -> None:
    environment.plant("print('garbage')", needs="numpy>=1\nfilelock")
    environment.distribution("numpy", "2.1.0")
    source = look(environment)
    save(source, str(tmp_path / "machine.json"))
    replayed = RecordedSource(str(tmp_path / "machine.json"))
    names = Pseudonyms()  # the saved ones have no more to be replaced
    for name in sorted(FACTS.keys() - PRIVATE):  # which nobody saves
        live, again = source.fetch(name), replayed.fetch(name)
        assert again.state is live.state, name
        if "home" not in str(live.value) and not name.startswith(("os.hostname", "gpu.uuids", "env.")):
            assert _plain(again.value) == json.loads(names.text(json.dumps(_plain(live.value)))), name
    assert replayed.faults == []
    # and it is the reading that is replayed, not the list of facts
    data = json.loads((tmp_path / "machine.json").read_text(encoding="utf-8"))
    del data["facts"]
    bare = RecordedSource(written(tmp_path, **{key: value for key, value in data.items() if key != "schema"}))
    assert bare.fetch("torch.version").value == "2.5.1+cu124"
    assert bare.fetch("torch.requirements_missing").value == ("filelock",)
    assert bare.fetch("torch.import_ok").value is True
    assert [fact.name for fact in bare.all() if fact.reason is Reason.NOT_ASKED] == []


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def test_a_recording_is_stable(environment: Environment, look: Callable[..., ProbeSource]) -> None:
    source = look(environment)
    assert to_text(source, "then") == to_text(source, "then")
    assert to_text(source, "then").isascii()


def test_names_are_replaced(
    environment: Environment,
    look: Callable[..., ProbeSource],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from torchdoctor.probes import operations

    home = tmp_path / "alice.secret"
    (home / "torch_extensions" / "lock").parent.mkdir(parents=True)
    monkeypatch.setenv("USER", "alice.secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(home / "torch_extensions"))
    monkeypatch.setenv("MASTER_ADDR", "10.11.12.13")
    monkeypatch.setenv("HF_HOME", "/scratch/node0815/alice.secret/hf")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setitem(
        operations.VALUES, "system", lambda: ["linux", "6.8.0", "x86_64", "node0815.cluster.example"]
    )
    environment.plant(
        "import os\nos.write(2, b'node0815: GPU-5b1ae5c2-7a3d-11ee-b962-0242ac120002 of alice.secret at "
        "http://10.1.2.3:80 02:42:ac:12:00:03\\n')"
    )
    text = to_text(look(environment), "2026-01-01T00:00:00Z")
    for secret in (
        "alice",
        "node0815",
        "cluster.example",
        "10.11.12.13",
        "10.1.2.3",
        "5b1ae5c2",
        "ac:12",
        "hunter2",
    ):
        assert secret not in text, secret
    assert "GPU-00000000-0000-0000-0000-000000000001" in text
    replayed = RecordedSource(_file(tmp_path, text))
    assert str(replayed.fetch("env.HF_HOME").value) == "/scratch/host-1/user-1/hf"
    assert replayed.fetch("os.hostname").value == "host-1"
    # paths made of replaced names still lead to what was read
    assert replayed.fetch("extension.locks").value == ()


def _file(folder: Path, text: str) -> str:
    path = folder / "saved.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_pseudonyms() -> None:
    names = Pseudonyms(hosts=("gpu-node7.site.org",), users=("bob7", "root"), home="/home/bob7")
    assert names.text("gpu-node7.site.org gpu-node7 xgpu-node7") == "host-1 host-1 xgpu-node7"
    assert names.text("/home/bob7/x bob70 root") == "/home/user-1/x bob70 root"
    same = "GPU-5b1ae5c2-7a3d-11ee-b962-0242ac120002"
    assert names.text(f"{same} {same}") == " ".join(["GPU-00000000-0000-0000-0000-000000000001"] * 2)
    assert (
        names.text("00000000:3b:00.0 12.4.5.8 nvidia-curand 10.4.0.35")
        == "00000000:3b:00.0 12.4.5.8 nvidia-curand 10.4.0.35"
    )
    assert names.text("[10.0.0.5:29500] tcp://10.0.0.6") == "[192.0.2.1:29500] tcp://192.0.2.2"
    assert names.text("Serial Number : 1654922004321\nChassis Serial Number : N/A") == (
        "Serial Number : 0000000000001\nChassis Serial Number : N/A"
    )
    pod = "kubepods/pod8e1c5f0a_1b2c_4d5e_8f90_a1b2c3d4e5f6"
    assert names.text(pod) == "kubepods/pod00000000_0000_0000_0000_000000000002"
    # names that are words of paths stay: nothing would be found again without them
    common = Pseudonyms(hosts=("vm",), users=("data",), home="/home/data")
    assert common.text("/proc/sys/vm/max_map_count /data/x") == "/proc/sys/vm/max_map_count /data/x"
    assert common.host("vm") == "host-1"


def test_facts_by_hand(tmp_path: Path) -> None:
    source = load_facts(
        written(
            tmp_path,
            about={"note": "a laptop"},
            facts={
                "torch.cuda": "12.4",
                "driver.present": True,
                "driver.version": {"value": "470.57.02", "source": "nvidia-smi"},
                "driver.cuda": "11.4",
                "driver.libcuda_kind": "driver",
                "os.name": "linux",
                "os.wsl": False,
                "gpu.names": ["NVIDIA GeForce RTX 3090"],
                "torch.hip": {"state": "absent"},
                "torch.arch_list": {"state": "unknown", "reason": "crashed", "detail": "why"},
                "env.CUDA_VISIBLE_DEVICES": "",
            },
        )
    )
    assert source.fetch("gpu.names").value == ("NVIDIA GeForce RTX 3090",)
    assert source.fetch("driver.version").source == "nvidia-smi"
    assert source.fetch("torch.hip").state is State.ABSENT
    assert source.fetch("torch.arch_list").reason is Reason.CRASHED
    assert source.fetch("env.CUDA_VISIBLE_DEVICES").value == ""
    # claims are made of them
    assert source.fetch("driver.covers_torch_cuda").value is False
    # what is not in it was not asked, which is not "absent"
    for name in ("python.version", "shm.size_bytes", "gpu.pci_count", "env.LD_LIBRARY_PATH", "limits.nofile"):
        fact = source.fetch(name)
        assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.NOT_ASKED), name


def test_a_stated_claim_stands_where_its_needs_are_not_known(tmp_path: Path) -> None:
    source = load_facts(written(tmp_path, facts={"torch.covers_gpu": False}))
    assert source.fetch("torch.covers_gpu").value is False


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"fatcs": {}}, r"top: unknown name 'fatcs'; did you mean 'facts'\?"),
        ({"facts": {"gpu.cuont": 2}}, r"facts: unknown name 'gpu.cuont'; did you mean 'gpu.count'\?"),
        ({"facts": {"gpu.count": "2"}}, r"facts.gpu.count: '2' is no int: int: GPUs"),
        ({"facts": {"gpu.count": True}}, r"facts.gpu.count: True is no int"),
        ({"facts": {"gpu.names": "H100"}}, r"facts.gpu.names: 'H100' is no list"),
        ({"facts": {"torch.cpu_only": 0}}, r"facts.torch.cpu_only: 0 is no bool"),
        ({"facts": {"torch.hip": None}}, r'null says neither absent nor unknown; write {"state": "absent"}'),
        (
            {"facts": {"torch.hip": {"state": "gone"}}},
            r"facts.torch.hip.state: 'gone' is none of known, absent",
        ),
        ({"facts": {"torch.hip": {"state": "absent", "value": "6.2"}}}, "a fact that is absent has no value"),
        ({"facts": {"torch.hip": {"state": "known"}}}, "a known fact needs a value"),
        ({"facts": {"torch.hip": {"stat": "known"}}}, r"unknown name 'stat'; did you mean 'state'\?"),
        (
            {"facts": {"torch.hip": {"state": "unknown", "reason": "tired"}}},
            "reason: 'tired' is none of not-installed",
        ),
        ({"facts": {"gpu.processes": [{"a": 1}]}}, "a fact is no mapping"),
        ({"facts": []}, "facts: expected an object, found a list"),
        ({"reads": {"flie /proc/version": {"is": ""}}}, r"reads: unknown name 'flie'; did you mean 'file'\?"),
        ({"reads": {"file /proc/version": {}}}, 'expected one of "is", "missing", "refused"'),
        ({"reads": {"file /x": {"refused": "no"}}}, "refused: 'no' is none of"),
        (
            {"programs": {"nvml": {"exit": 0}}},
            r"programs.nvml: unknown name 'exit'; did you mean 'exit_code'\?",
        ),
        ({"programs": {"nvml": {"lines": ["a"]}}}, "lines: expected a list of objects"),
        ({"programs": {"nvml": {"exit_code": "0"}}}, "exit_code: '0' is no number"),
        ({"about": {"when": ""}}, "about: unknown name 'when'"),
    ],
)
def test_mistakes(content: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    path = written(tmp_path, **content)
    with pytest.raises(RecordingError, match=complaint) as error:
        RecordedSource(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no JSON"),
        ("[1]", "expected an object, found a list"),
        ('{"schema": "torchdoctor.machine/9"}', "'torchdoctor.machine/9' is not 'torchdoctor.machine/1'"),
        ("[" * 100_000, "nested too deep|no JSON"),
        ('{"schema": "torchdoctor.machine/1"', "no JSON"),
    ],
)
def test_files_that_are_no_recording(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=complaint):
        RecordedSource(_file(tmp_path, text))


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        RecordedSource(str(tmp_path / "gone.json"))
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(RecordingError, match="no UTF-8 text at byte 0"):
        RecordedSource(str(tmp_path / "binary.json"))
    with pytest.raises(RecordingError, match="cannot be written"):
        save(RecordedSource(written(tmp_path)), str(tmp_path / "no" / "such" / "folder.json"))


def test_readings_of_the_wrong_form_make_no_fault(tmp_path: Path) -> None:
    """A file edited by hand may hold any JSON where a text or a list is expected."""
    reads = {
        "value system": 7,
        "value home": [],
        "mounts /proc/self/mountinfo": "x",
        "displays /sys/bus/pci/devices": [3],
        "file /proc/meminfo": {},
        "value user": "u",
        "value limit:RLIMIT_NOFILE": [],
        "cache libcuda.so.1": "x",
        "value cpus": "two",
        "file /proc/driver/nvidia/version": "",
        "value now": "then",
    }
    source = RecordedSource(written(tmp_path, reads={key: {"is": value} for key, value in reads.items()}))
    source.all()
    assert source.faults == []


def test_a_newer_torchdoctor_may_tell_more(tmp_path: Path) -> None:
    content = {"facts": {"gpu.count": 1, "gpu.flux": 3}, "reads": {"dream /x": {"is": 1}}}
    source = RecordedSource(written(tmp_path, about={"torchdoctor": "99.0"}, **content))
    assert source.fetch("gpu.count").value == 1
    with pytest.raises(RecordingError, match=r"gpu\.flux"):
        RecordedSource(written(tmp_path, **content))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_machines_of_the_fixtures(path: Path) -> None:
    """Each can be read; where facts and readings are both there, they agree."""
    source = RecordedSource(str(path))
    facts = all_facts(str(path))
    assert source.faults == []
    for fact in facts:
        stated = source.stated.get(fact.name)
        if stated is not None:
            assert (fact.state, fact.value) == (stated.state, stated.value), fact.name
    assert any(fact.state is State.KNOWN for fact in facts)


# Recordings with readings of any form, and programs that report anything: no probe may fail on them


# What a file of /proc, a listing or a tool may hold instead of what it should.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**70,
    "",
    " ",
    "\x00",
    "a:b:c\nd\n",
    "max",
    "9" * 400,
    "é\udcff",
    "0::",
    ":::\n:",
    [],
    [[]],
    [None],
    ["a", 1],
    [["a"]],
    [[1, 2, 3]],
    {},
    {"total": "x"},
    {"pids": 3},
    {"needed": [1]},
    {"libcuda.so.1": 7},
)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_recordings(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    name = chance.choice(("h100", "laptop-cpu", "workstation-cuda-no-gpu"))
    data = json.loads((MACHINES[0].parent / f"{name}.json").read_text(encoding="utf-8"))
    del data["facts"]
    keys = sorted(data["reads"])
    for key in chance.sample(keys, 25):
        data["reads"][key] = chance.choice(
            [
                {"is": chance.choice(ODD)},
                {"missing": True},
                {"refused": "not-permitted"},
                {"refused": "crashed"},
            ]
        )
    for key in chance.sample(keys, 5):
        data["reads"].pop(key, None)
    for program in data["programs"].values():
        lines = program.get("lines", [])
        for line in lines:
            if chance.random() < 0.3:
                line[chance.choice(("name", "value", "state", "reason", "detail", "stage"))] = chance.choice(
                    ODD
                )
        if chance.random() < 0.3:
            program["lines"] = lines[: chance.randrange(len(lines) + 1)]
            program["signal"] = chance.choice((6, 9, 11, 77))
            program.pop("exit_code", None)
        if "stdout" in program and chance.random() < 0.5:
            text = program["stdout"]
            at = chance.randrange(len(text) + 1)
            program["stdout"] = (
                text[:at] + chance.choice(("", "\x00", " : ", "\n\n", "N/A")) + text[at + 20 :]
            )
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    source = RecordedSource(str(path))
    facts = source.all()
    assert source.faults == []
    for fact in facts:
        assert isinstance(fact, Fact)
        assert (fact.reason is not None) == (fact.state is State.UNKNOWN), fact
        assert fact.state is State.KNOWN or fact.value is None, fact
        assert fact.state is not State.KNOWN or fact.value is not None, fact


# Facts of a machine out of a JSON file: what is read, and what every mistake in it is told
def recorded_facts_written(folder: Path, text: str) -> str:
    path = folder / "facts.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_names_and_values(tmp_path: Path) -> None:
    source = load_facts(
        recorded_facts_written(
            tmp_path, '{"torch.version": "2.1", "gpu.count": 0, "gpu.names": ["A", "B"], "torch.hip": null}'
        )
    )
    assert sorted(source.names()) == ["gpu.count", "gpu.names", "torch.hip", "torch.version"]
    assert source.fetch("gpu.count").value == 0
    assert source.fetch("gpu.names").value == ("A", "B")
    assert source.fetch("torch.hip").state is State.ABSENT
    assert source.fetch("torch.version").source.endswith("facts.json")
    other = source.fetch("torch.cuda")
    assert (other.state, other.reason) == (State.UNKNOWN, Reason.NOT_ASKED)


def test_the_facts_of_a_report(tmp_path: Path) -> None:
    source = load_facts(recorded_facts_written(tmp_path, to_json(sample_reports.DIAGNOSED)))
    assert source.fetch("torch.version") == sample_reports.DIAGNOSED.facts[0]
    assert source.fetch("driver.version").reason is Reason.NOT_PERMITTED
    assert source.fetch("torch.arch_list").value == ("sm_80", "sm_90")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{not json", "not JSON"),
        ("[1]", "must be an object"),
        ('{"facts": {}}', "facts must be a list"),
        ('{"facts": [1]}', r"facts\[1\] must be an object"),
        ('{"facts": [{"name": "a", "state": "sure"}]}', "states: known, absent, unknown"),
        ('{"facts": [{"name": "a", "state": "unknown"}]}', "needs a reason"),
        ('{"facts": [{"name": "a", "state": "unknown", "reason": "tired"}]}', "reasons: not-installed"),
        ('{"env.A": {"b": 1}}', "not an object"),
        ('{"torch.verison": "2.9.0"}', "unknown fact 'torch.verison'; did you mean 'torch.version'"),
        ('{"qqqq": 1}', "unknown fact 'qqqq'; `torchdoctor rules facts` lists them"),
        ('{"torch.version": 2.9}', "torch.version: 2.9 is no text: "),
        ('{"gpu.count": true}', "gpu.count: True is no int: "),
        ('{"facts": [{"name": "a", "value": 1}]}', "no fact of a machine in it; unknown fact 'a'"),
        ("[" * 100_000, "not JSON|must be an object"),
        ("", "not JSON"),
    ],
)
def test_recorded_facts_mistakes(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(FactsFileError, match=complaint) as error:
        load_facts(recorded_facts_written(tmp_path, text))
    assert "facts.json: " in str(error.value)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    text = json.dumps({"facts": [{"state": "known"}, {"name": "a", "state": "sure"}]})
    with pytest.raises(FactsFileError) as error:
        load_facts(recorded_facts_written(tmp_path, text))
    assert len(str(error.value).splitlines()) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactsFileError, match="cannot be read: No such file"):
        load_facts(str(tmp_path / "gone.json"))
