"""Ranks of one job on this node, held against each other: who waits in which call, and who is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchdoctor.hang import procfs
from torchdoctor.hang.look import Seen
from torchdoctor.hang.own import on_gpu
from torchdoctor.hang.stacks import Stack
from torchdoctor.hang.wait import Group, Wait, at
from torchdoctor.model import Fix, Frame, Record, Standing
from torchdoctor.records import record

_C10D = "torch/distributed/distributed_c10d.py"
_MEETING = (
    ("torch/distributed/rendezvous.py", ""), (
        "torch/distributed/distributed_c10d.py", "_store_based_barrier"),
    ("torch/distributed/elastic/rendezvous/", ""),
)  # fmt: skip
_SETUP = ("init_process_group", "_new_process_group_helper", "new_group", "_new_group_with_tag")
_GRADIENTS = (("torch/autograd/graph.py", "_engine_run_backward"), ("torch/autograd/__init__.py", "backward"))
_WRAPPERS = ("torch/nn/parallel/distributed.py", "torch/distributed/fsdp/", "torch/distributed/_composable/")


@record(frozen=True, slots=True)
class Stand(Record):
    """Where its main thread is: ``meeting``, ``setup``, ``collective`` (in ``call``), ``gpu`` or ``outside``.

    ``gpu``: it waits for its GPU, and NCCL has a communicator there; its collectives return before they ran.
    """

    seen: Seen
    stack: Stack
    kind: str
    call: str = ""


def stand_of(one: Seen) -> Stand | None:
    """None where there is no stack."""
    main = one.main
    if main is None or not main.frames:
        return None
    names = [(frame.file.replace("\\", "/"), frame.function.rpartition(".")[2]) for frame in main.frames]
    for file, function in reversed(names):
        if any(part in file and (not wanted or wanted == function) for part, wanted in _MEETING):
            return Stand(one, main, "meeting", function)
        if file.endswith(_C10D):
            if any(other in _SETUP for path, other in names if path.endswith(_C10D)):
                return Stand(one, main, "setup", function)
            call = next(
                (
                    other
                    for path, other in names
                    if path.endswith(_C10D) and other not in ("wrapper", "_wait")
                ),
                function,
            )
            return Stand(one, main, "collective", call)
        quiet = one.same(main) and one.busy() < 0.1
        if quiet and any(part in file and wanted == function for part, wanted in _GRADIENTS):
            return Stand(one, main, "collective", "backward")
        if quiet and any(part in file for part in _WRAPPERS):
            return Stand(one, main, "collective", function)
    if on_gpu(one) is not None and any("nccl" in task.name.lower() for task in one.second.tasks):
        return Stand(one, main, "gpu")
    return Stand(one, main, "outside")


def stands_of(group: Group) -> list[Stand]:
    """Where each rank of the job is: the process in which the job's own code runs, not its children."""
    stands = [stand for one in group.all if one.rank is not None and (stand := stand_of(one)) is not None]
    return [
        one
        for one in stands
        if not any(one.seen in group.below(other.seen) for other in stands if other is not one)
    ]


def together(stands: Sequence[Stand]) -> Iterator[Wait]:
    """What the ranks of one job do, and which rank stands elsewhere or is missing."""
    if not stands:
        return
    world = _world(stands)
    meeting = [one for one in stands if one.kind in ("meeting", "setup")]
    waiting = [one for one in stands if one.kind == "collective"]
    outside = [one for one in stands if one.kind == "outside"]
    still = [one for one in waiting if one.seen.same(one.stack)]
    missing = (
        sorted(set(range(world)) - {one.seen.rank for one in stands if one.seen.rank is not None})
        if world
        else []
    )
    if meeting and all(one.seen.same(one.stack) for one in meeting):
        yield from _meeting(meeting, outside, missing, world)
    elif still and (outside or len({_where(one) for one in waiting}) > 1):
        yield from _branch(still, [one for one in stands if one not in still], missing)
    elif still and missing:
        yield from _absent(still, f"in {still[0].call}", missing, world)
    elif still and len(still) == len(stands):
        yield from _nccl_init(still)
    elif outside and not waiting and not meeting:
        yield from _behind([one for one in stands if one.kind == "gpu"], outside)
    elif missing and all(one.kind == "gpu" for one in stands):
        yield from _absent(stands, "for the GPU", missing, world)


def _world(stands: Sequence[Stand]) -> int:
    sizes = {
        one.seen.second.variable("WORLD_SIZE") or one.seen.second.variable("SLURM_NTASKS") for one in stands
    }
    found = [int(size) for size in sizes if size.isdecimal() and 0 < int(size) < 100_000]
    return max(found, default=0)


def _where(one: Stand) -> tuple[str, str, int | None]:
    own = one.stack.own
    return one.call, own.file if own else "", own.line if own else None


def _named(stands: Sequence[Stand]) -> str:
    numbers = sorted(one.seen.rank for one in stands if one.seen.rank is not None)
    return f"rank{'s' * (len(numbers) != 1)} {', '.join(map(str, numbers[:16]))}"


def _lines(stands: Sequence[Stand]) -> Iterator[str]:
    """One line for each place, with the ranks that stand there."""
    places: dict[str, list[Stand]] = {}
    for one in stands:
        what = {
            "collective": f"in {one.call} ",
            "gpu": "waits for the GPU ",
            "meeting": "at the rendezvous ",
            "outside": "outside of any collective ",
            "setup": f"in {one.call} ",
        }[one.kind]
        places.setdefault(f"{what}at {at(one.stack)}", []).append(one)
    for place, found in places.items():
        yield f"{_named(found)}: {place}"


def _meeting(
    meeting: Sequence[Stand], outside: Sequence[Stand], missing: Sequence[int], world: int
) -> Iterator[Wait]:
    address = meeting[0].seen.second
    where = f"{address.variable('MASTER_ADDR') or '?'}:{address.variable('MASTER_PORT') or '?'}"
    says = [f"{_named(meeting)} of {world or '?'} wait for the others at {where}"]
    if missing:
        says.append(f"not on this node: rank{'s' * (len(missing) != 1)} {', '.join(map(str, missing[:16]))}")
    says += [*_lines(outside), *_lines(meeting)]
    nccl = (
        not missing
        and not outside
        and any(procfs.maps(one.seen.pid, "libnccl") and _nccl_threads(one) for one in meeting)
    )
    blamed = outside or meeting
    yield Wait(
        "hang-nccl-init" if nccl else "dist-rendezvous-timeout",
        blamed[0].seen.pid, tuple(says), _own(blamed),
        (Fix("Start the missing ranks, with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, or start "
             "all with torchrun."),
         Fix("From the node of a missing rank see whether the address "
             "answers:", _ask(address.variable("MASTER_ADDR"), address.variable("MASTER_PORT")))),
        Standing.CONFIRMED if missing or outside else Standing.POSSIBLE,
    )  # fmt: skip


def _ask(address: str, port: str) -> str:
    plain = address.replace(".", "").replace("-", "").isalnum() and port.isdecimal()
    return f"nc -zv {address} {port}" if plain else "nc -zv MASTER_ADDR MASTER_PORT"


def _branch(waiting: Sequence[Stand], others: Sequence[Stand], missing: Sequence[int]) -> Iterator[Wait]:
    odd = list(others or _fewest(waiting))
    rest = [one for one in waiting if one not in odd] or waiting
    says = [
        f"{_named(rest)} {'wait' if len(rest) > 1 else 'waits'} in {rest[0].call}, and "
        f"{_named(odd)} {'stand' if len(odd) > 1 else 'stands'} elsewhere"
    ]
    if not odd:
        says = ["the ranks wait in different calls"]
    says += [*_lines(waiting), *_lines(others)]
    if missing:
        says.append(f"not on this node: ranks {', '.join(map(str, missing[:16]))}")
    working = [one for one in others if _works(one)]
    if working:
        yield _slow(working, waiting, f"in {waiting[0].call}")
        return
    yield Wait(
        "collective-rank-branch", odd[0].seen.pid if odd else 0, tuple(says), _own(odd or waiting),
        (Fix("Call every collective on every rank: take it out of the branch (if rank == 0), and give all "
             "ranks the same number of steps."),
         Fix("See which collective each rank called:", "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py")),
    )  # fmt: skip


def _fewest(waiting: Sequence[Stand]) -> Sequence[Stand]:
    """Those at the place where the fewest stand; none where two places have as few."""
    places: dict[tuple[str, str, int | None], list[Stand]] = {}
    for one in waiting:
        places.setdefault(_where(one), []).append(one)
    first, second, *_ = sorted(places.values(), key=len)
    return first if len(first) < len(second) else ()


def _behind(behind: Sequence[Stand], outside: Sequence[Stand]) -> Iterator[Wait]:
    """Ranks that wait for their GPU while others never reached it: a collective of NCCL runs on the GPU."""
    if not behind:
        return
    working = [one for one in outside if _works(one)]
    if working:
        yield _slow(working, behind, "for the GPU")
        return
    several = len(outside) > 1
    yield Wait(
        "collective-rank-branch", outside[0].seen.pid,
        (f"{_named(behind)} {'wait' if len(behind) > 1 else 'waits'} for the GPU, and {_named(outside)} "
         f"{'stand' if several else 'stands'} elsewhere", *_lines(behind), *_lines(outside)),
        _own(outside),
        (Fix(f"Find out why {_named(outside)} {'do' if several else 'does'} not get to the collective."),
         Fix("See which collective each rank called:", "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py")),
        Standing.POSSIBLE,
    )  # fmt: skip


def _slow(working: Sequence[Stand], waiting: Sequence[Stand], where: str) -> Wait:
    return Wait(
        "hang-slow", working[0].seen.pid,
        (f"{_named(working)} {'work' if len(working) > 1 else 'works'}, and "
         f"{_named(waiting)} {'wait' if len(waiting) > 1 else 'waits'} {where}",
         *_lines(working), *_lines(waiting)),
        working[0].stack.own,
    )  # fmt: skip


def _works(one: Stand) -> bool:
    """Its stack moved, or it computes; a rank that waits for its GPU burns a processor and does not work."""
    spins = one.seen.busy() > 0.1 and not procfs.maps(one.seen.pid, "libcuda.so")
    return not one.seen.same(one.stack) or spins


def _absent(waiting: Sequence[Stand], where: str, missing: Sequence[int], world: int) -> Iterator[Wait]:
    listed = ", ".join(map(str, missing[:16]))
    yield Wait(
        "collective-rank-branch", 0,
        (f"{_named(waiting)} of {world} {'wait' if len(waiting) > 1 else 'waits'} {where}; not seen on this "
         f"node: rank{'s' * (len(missing) != 1)} {listed}", *_lines(waiting)),
        _own(waiting),
        (Fix("Look at the missing ranks: on their nodes, torchdoctor hang --all; here, whether they "
             "ended."),),
        Standing.POSSIBLE,
    )  # fmt: skip


def _nccl_init(waiting: Sequence[Stand]) -> Iterator[Wait]:
    """All stand in one call, and NCCL has not started its service threads: it is still being set up."""
    found = [one for one in waiting if procfs.maps(one.seen.pid, "libnccl") and not _nccl_threads(one)]
    watched = [one for one in found if any("nccl" in task.name.lower() for task in one.seen.second.tasks)]
    if not watched:
        return
    yield Wait(
        "hang-nccl-init", watched[0].seen.pid,
        (f"{_named(watched)} stand in {watched[0].call}, and NCCL has set up no communicator "
         "yet", *_lines(watched)),
        _own(watched),
        (Fix("Let NCCL say what it waits for:", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET torchrun "
                                                "train.py"),
         Fix("Name the network interface that the nodes "
             "share:", "NCCL_SOCKET_IFNAME=eth0 torchrun train.py")),
        Standing.POSSIBLE,
    )  # fmt: skip


def _nccl_threads(one: Stand) -> bool:
    """Threads that NCCL starts when a communicator is ready (proxy.cc names them)."""
    return any(task.name.startswith(("NCCL Service", "NCCL Progress")) for task in one.seen.second.tasks)


def _own(stands: Sequence[Stand]) -> Frame | None:
    return stands[0].stack.own
