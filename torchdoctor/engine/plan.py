"""Which torch fits this machine: a release, a build and the command that installs it, out of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor.engine.conditions import as_text
from torchdoctor.engine.factbook import FactBook
from torchdoctor.probes.compatibility import covered_by, parse, runs_minor, table
from torchdoctor.records import Record, record

INDEX = "https://download.pytorch.org/whl/"


@record(frozen=True, slots=True)
class Plan(Record):
    """``build`` is cpu or cu130; ``because`` says what was looked at, ``unsure`` what is not known.

    ``torch`` is None where no release fits; ``because`` says then what stands in the way.
    """

    torch: str | None
    build: str | None
    index: str | None
    command: str | None
    because: tuple[str, ...]
    unsure: tuple[str, ...]


def plan(facts: FactBook) -> Plan:
    """The newest torch with a wheel for this Python that runs on this driver and has code for each GPU."""
    python = _text(facts, "python.version")
    system = "windows" if _text(facts, "os.name") == "windows" else "linux"
    driver, cuda = _text(facts, "driver.version"), _text(facts, "driver.cuda")
    gpus = facts.machine("gpu.compute_capability").value
    capabilities = tuple(str(one) for one in gpus if one is not None) if isinstance(gpus, tuple) else ()
    because = [f"Python {python}", f"driver {driver} for CUDA {cuda}" if driver else "no NVIDIA driver"]
    because += [f"GPUs of compute capability {', '.join(sorted(set(capabilities)))}"] if capabilities else []
    unsure: list[str] = []
    if driver and not capabilities:
        unsure.append("the compute capability of the GPUs is not known")
    if _text(facts, "torch.hip") or "amd" in (facts.machine("gpu.vendors").value or ()):  # type: ignore[operator]
        unsure.append("GPUs of AMD: the builds for ROCm are not in the tables")
    minor = ".".join(python.split(".")[:2])
    musl = facts.machine("python.musl").value is True
    maybe: Plan | None = None
    for row in table("torch"):
        if musl or minor not in row["python"].split(","):
            continue
        if not driver or not cuda:
            return _made(row["torch"], "cpu", because, unsure)
        for build, remark in _builds(row, parse(driver), parse(cuda), capabilities, system):
            if not remark:
                return _made(row["torch"], build, because, unsure + ([maybe.unsure[-1]] if maybe else []))
            maybe = maybe or _made(row["torch"], build, because, [*unsure, remark])
    if maybe is not None:
        return maybe
    what = f"no release of torch in the tables has a wheel for Python {minor or '?'} that fits"
    if musl:
        what = "the C library is musl, for which torch has no wheels"
    return Plan(None, None, None, None, (*because, what), tuple(unsure))


def to_json(found: Plan) -> str:
    """One line, ``torchdoctor.plan/1``: the fields of ``Plan``, null for what there is not."""
    import json

    return json.dumps({
        "schema": "torchdoctor.plan/1", "torch": found.torch, "build": found.build, "index": found.index,
        "command": found.command, "because": found.because, "unsure": found.unsure,
    })  # fmt: skip


def lines(found: Plan) -> Iterator[str]:
    """The plan for people: the command last."""
    yield f"torch {found.torch}, build {found.build}" if found.torch else "no torch fits"
    yield f"  for {'; '.join(found.because)}"
    yield from (f"  ? {one}" for one in found.unsure)
    if found.command:
        yield found.command


def _text(facts: FactBook, name: str) -> str:
    return as_text(facts.machine(name))


def _made(torch: str, build: str, because: list[str], unsure: list[str]) -> Plan:
    index = f"{INDEX}{build}"
    command = f"python -m pip install torch=={torch} --index-url {index}"
    return Plan(torch, build, index, command, tuple(because), tuple(unsure))


def _builds(
    row: Mapping[str, str], driver: tuple[int, ...], cuda: tuple[int, ...], gpus: tuple[str, ...], system: str
) -> Iterator[tuple[str, str]]:
    """The builds of a release that fit, newest CUDA first, with what is not known of each, else empty."""
    release = parse(row["torch"])[:2]
    known = {one["build"]: one for one in table("builds") if parse(one["torch"]) == release}
    usual = "cu" + row["cuda"].replace(".", "")
    offered = set(known) or ({usual} if row["cuda"] != "-" else set())
    for build in sorted(offered, key=_cuda, reverse=True):
        wants = _cuda(build)
        exact = cuda >= wants
        if not exact and not (cuda[0] == wants[0] and runs_minor(driver, wants, system)):
            continue
        like = known.get(build) or next((one for one in table("builds")[::-1] if one["build"] == build), None)
        if like is None:
            yield build, f"for which GPUs torch {row['torch']} for {build} has code is not known yet"
            continue
        architectures = _architectures(like["architectures"])
        ways = [covered_by(gpu, architectures) for gpu in gpus]
        # the driver's compiler does not know PTX of a newer CUDA than its own
        if all(way == "binary" or (way == "ptx" and exact) for way in ways):
            about = f"for which GPUs torch {row['torch']} has code is not known yet; {like['torch']} has it"
            yield build, "" if build in known else about


def _cuda(build: str) -> tuple[int, ...]:
    """(13, 0) of cu130, (11, 8) of cu118."""
    return int(build[2:-1]), int(build[-1])


def _architectures(text: str) -> tuple[str, ...]:
    """sm_90 and compute_120 of "9.0 12.0+PTX"."""
    found = []
    for one in text.split():
        number = one.removesuffix("+PTX").replace(".", "")
        found += [f"sm_{number}", *([f"compute_{number}"] if one.endswith("+PTX") else [])]
    return tuple(found)
