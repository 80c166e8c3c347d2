"""Judging the folders in which the job's compilers keep what they built: locks, room, what lies in them."""

from __future__ import annotations

from torchdoctor.gate.finding import Action
from torchdoctor.gate.look import ENVIRONMENT, FAIL, INFO, WARN, Check, Look, Said
from torchdoctor.number import count

_OLD_LOCK_S = 600.0
_SHOWN = 3


def _locks(look: Look) -> Said:
    for row in look.facts.rows("env.locks", 2):
        age = row[1] if isinstance(row[1], (int, float)) else 0
        if age > _OLD_LOCK_S:
            yield look.found(
                "extension-locks", "A build lock remains: extensions would wait forever", FAIL, ENVIRONMENT,
                Action.CLEAN_UP, observed=f"{row[0]}, {age / 60:.0f} minutes old",
                expected="no lock older than 10 minutes",
                source="TORCH_EXTENSIONS_DIR", advice=f"rm {row[0]}, if no build is running",
            )  # fmt: skip


def _locking(look: Look) -> Said:
    for row in [look.facts.items("env.locking")]:
        if len(row) == 3 and row[1]:
            closed = str(row[1]).startswith("no lock can be created")
            yield look.found(
                "extension-locks", "File locks do not work where extensions are built", WARN, ENVIRONMENT,
                Action.CHANGE_JOB, tag="locking", observed=f"{row[0]} ({row[2]}): {row[1]}",
                expected="a folder that can be written" if closed else "O_EXCL and flock exclude others",
                source="tried there", advice="set TORCH_EXTENSIONS_DIR to a local disk",
            )  # fmt: skip
        elif len(row) == 3 and str(row[2]).startswith(("nfs", "lustre", "cifs", "9p")):
            yield look.found(
                "extension-locks", "Extensions are built on a shared disk", INFO, None, Action.NONE,
                tag="locking", observed=f"{row[0]} ({row[2]})", expected="a local disk",
            )  # fmt: skip


def _caches(look: Look) -> Said:
    for row in look.facts.rows("env.caches", 3):
        if row[1]:
            full = "space" in str(row[1]).lower() or "quota" in str(row[1]).lower()
            yield look.found(
                "caches", "A cache folder is full" if full else "A cache folder is not writable", FAIL,
                ENVIRONMENT,
                Action.CLEAN_UP if full else Action.CHANGE_JOB, tag="cache-full" if full else "cache-closed",
                observed=f"{row[0]}: {row[1]}", expected="writable", source="a file of 64 KiB written there",
            )  # fmt: skip
            continue
        free = row[3] if len(row) > 3 else None
        if isinstance(free, int) and 0 <= free < look.limit("cache_free_warn_bytes"):
            yield look.found(
                "caches", "A cache folder is almost full", WARN, ENVIRONMENT, Action.CLEAN_UP,
                tag="cache-small", observed=f"{row[0]}: {free / 1e6:.0f} MB free",
                expected=f"at least {look.limit('cache_free_warn_bytes') / 1e6:.0f} MB",
                source=look.limit_source("cache_free_warn_bytes"),
            )  # fmt: skip
        if row[2] is False:
            yield look.found(
                "caches", "Code may not run from a cache folder (noexec)", WARN, ENVIRONMENT,
                Action.CHANGE_JOB,
                tag="cache-noexec", observed=str(row[0]), expected="mounted without noexec", source="statvfs",
            )  # fmt: skip


def _built(look: Look) -> Said:
    """Extensions that lie in the cache for another architecture: two kinds of nodes share one folder.

    A job on this node builds them anew, over those that a job on the other kind of node has loaded.
    """
    capabilities = sorted({str(row[2]) for row in look.facts.rows("env.devices", 3)})
    wrong = []
    for row in look.facts.rows("env.built", 2):
        arches = [str(one) for one in row[1]] if isinstance(row[1], list) else []
        if arches and not all(covers(arches, one) for one in capabilities):
            wrong.append(f"{row[0]}: {', '.join(arches)}")
    if wrong and capabilities:
        here = ", ".join(f"sm_{one.replace('.', '')}" for one in capabilities)
        yield look.found(
            "caches", "Extensions in the cache are built for other GPUs", WARN, ENVIRONMENT,
            Action.CHANGE_JOB, tag="cache-architecture", observed=f"{len(wrong)} of them, first {wrong[0]}",
            expected=f"code for {here}, or a folder for each kind of GPU", source="build.ninja in them",
            evidence=tuple(wrong[:_SHOWN]), advice=f"set TORCH_EXTENSIONS_DIR to a folder for {here} alone",
        )  # fmt: skip


def covers(arches: list[str], capability: str) -> bool:
    """Code of the same major version up to this minor one, or PTX of any version up to it."""
    major, _, minor = capability.partition(".")
    own = (int(major), int(minor or 0))
    for arch in arches:
        kind, _, digits = arch.partition("_")
        plain = digits.rstrip("af")
        code = count(plain)
        if code is None or len(plain) < 2:
            continue
        there = divmod(code, 10)
        if digits.endswith("a"):
            if there == own:
                return True
        elif (kind == "compute" and there <= own) or (
            kind == "sm" and there[0] == own[0] and there[1] <= own[1]
        ):
            return True
    return not any(arch.startswith(("sm_", "compute_")) for arch in arches)


CHECKS = (
    Check("extension-locks", "No build lock remains", _locks),
    Check("extension-locks", "Locks work where extensions are built", _locking),
    Check("caches", "Cache folders can be used", _caches),
    Check("caches", "The caches are for these GPUs", _built),
)
