"""The site's policy: a strict TOML file. Every mistake in it is named with file, key and what is near."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torchdoctor.gate.finding import Action, Finding, Untold, Weight
from torchdoctor.model import Blame, TorchdoctorError, counted
from torchdoctor.probes import named_file


class PolicyError(TorchdoctorError):
    """A policy file that cannot be used: which file, which key, what would be right."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number of the rules, and where it is from."""

    value: float
    source: str


# Names are keys of [thresholds]; units stand in them.
THRESHOLDS: Mapping[str, Threshold] = {
    "memory_used_fail_share": Threshold(0.05, "built in: more than drivers keep for themselves"),
    "memory_used_warn_bytes": Threshold(500e6, "built in: more than drivers keep for themselves"),
    "ecc_corrected_warn": Threshold(20e6, "built in: Azure's node health checks, DRAM"),
    "sram_corrected_warn": Threshold(10_000, "built in: Azure's node health checks, SRAM"),
    "retired_pages_warn": Threshold(10, "built in: GCM"),
    "retired_pages_fail": Threshold(62, "built in: Azure's node health checks, with more pending"),
    "sram_uncorrected_warn": Threshold(4, "built in: ml-engineering"),
    "contained_errors_fail": Threshold(3, "built in: Xid 94 since the last reset"),
    "app_xid_jobs_warn": Threshold(3, "built in: distinct processes on one GPU"),
    "amd_resets_warn": Threshold(3, "built in: resets of one AMD GPU since boot"),
    "temperature_margin_fail_c": Threshold(3, "built in: headroom to the GPU's own slowdown"),
    "temperature_margin_warn_c": Threshold(10, "built in: headroom to the GPU's own slowdown"),
    "power_limit_warn_share": Threshold(0.98, "built in: of the default limit"),
    "power_limit_fail_share": Threshold(0.70, "built in: of the default limit"),
    "clock_limit_warn_share": Threshold(0.90, "built in: share of the clock that should be"),
    "clock_limit_fail_share": Threshold(0.70, "built in: share of the clock that should be"),
    "nvlink_errors_warn": Threshold(1000, "built in: replays and recoveries since the driver was loaded"),
    "pcie_corrected_warn": Threshold(1000, "built in: corrected errors of a link since boot"),
    "disk_free_warn_share": Threshold(0.10, "built in: gpud"),
    "disk_free_fail_bytes": Threshold(500e6, "built in: gpud"),
    "cache_free_warn_bytes": Threshold(1e9, "built in: what one build of a large extension takes"),
    "inodes_free_warn_share": Threshold(0.02, "built in"),
    "shm_fail_bytes": Threshold(64 * 1024**2, "built in: docker's default, too small for DataLoader workers"),
    "shm_warn_bytes": Threshold(1024**3, "built in"),
    "nofile_hard_warn": Threshold(65536, "built in"),
    "clock_offset_warn_s": Threshold(0.1, "built in"),
    "clock_offset_fail_s": Threshold(5, "built in"),
    "ib_link_downs_warn": Threshold(5, "built in: Azure's node health checks, there in 24 hours"),
    "zombies_warn": Threshold(1000, "built in: gpud"),
    "stuck_fail_s": Threshold(300, "built in: GCM"),
    "uptime_warn_s": Threshold(0, "built in: off"),
}
ON_UNKNOWN = ("inconclusive", "warn", "ignore", "unfit")
_WEIGHTS = ("fail", "warn", "info")
_EXPECT = (
    "gpus",
    "model",
    "driver",
    "nvlinks",
    "mig",
    "ib_ports",
    "ib_rate_gbps",
    "pcie_width",
    "mounts",
    "transport",
)
_CHECK = ("on_unknown", "weight")
_SUPPRESSION = ("check", "owner", "until", "reason", "gpu")
_TOP = ("expect", "thresholds", "required", "checks", "suppress", "profiles", "options")
_OPTIONS = ("remap_pending", "prefix", "persistence", "dcgm")
_DCGM_LEVELS = (0, 1, 2, 3)
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Suppression:
    """A finding that the site knows of. ``until`` is a day, YYYY-MM-DD; after it the finding counts again."""

    check: str
    owner: str
    until: str
    reason: str = ""
    gpu: str = ""

    def expired(self, today: str) -> bool:
        return today > self.until

    def fits(self, finding: Finding) -> bool:
        if self.check not in (finding.check, finding.tag):
            return False
        return self.gpu in ("", finding.uuid, finding.pci, str(finding.gpu))


@dataclass(frozen=True, slots=True)
class Policy:
    """``expect`` as the file has it, with the profile of the GPUs' model over it."""

    path: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    on_unknown: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    suppressions: tuple[Suppression, ...] = ()
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str = field(default="", repr=False)  # the file, to be kept with a verdict

    def threshold(self, name: str) -> float:
        found = self.thresholds.get(name)
        return THRESHOLDS[name].value if found is None else found

    def threshold_source(self, name: str) -> str:
        return f"{self.path}: thresholds.{name}" if name in self.thresholds else THRESHOLDS[name].source

    def expected(self, name: str) -> Any:
        return self.expect.get(name)

    def for_model(self, model: str) -> Policy:
        """The policy with the profile whose name stands in the GPUs' name; the longest such name wins."""
        fitting = [name for name in self.profiles if name.lower() in model.lower()]
        if not model or not fitting:
            return self
        profile = self.profiles[max(fitting, key=len)]
        return replace(
            self,
            expect={**self.expect, **profile.get("expect", {})},
            thresholds={**self.thresholds, **profile.get("thresholds", {})},
        )

    def apply(
        self, findings: tuple[Finding, ...], untold: tuple[Untold, ...], today: str = ""
    ) -> tuple[tuple[Finding, ...], tuple[Untold, ...], tuple[str, ...]]:
        """Weights, suppressions and what to do with the unknown; and a note for each suppression."""
        today = today or time.strftime("%Y-%m-%d")
        judged: list[Finding] = []
        for finding in findings:
            weight = self.weights.get(finding.check)
            changed = replace(finding, weight=Weight(weight)) if weight else finding
            by = next(
                (one for one in self.suppressions if one.fits(changed) and not one.expired(today)), None
            )
            judged.append(replace(changed, suppressed=f"{by.owner} until {by.until}") if by else changed)
        kept: list[Untold] = []
        for one in untold:
            wish = self.on_unknown.get(one.check)
            required = wish == "inconclusive" or (
                wish is None and (one.required or one.check in self.required)
            )
            if wish == "warn" or wish == "unfit":
                weight_now = Weight.FAIL if wish == "unfit" else Weight.WARN
                judged.append(
                    Finding(
                        one.check,
                        "Could not be checked, and the policy does not accept that",
                        weight_now,
                        Blame.NODE,
                        Action.INSPECT,
                        f"{one.check}-unknown",
                        observed=one.reason,
                        expected="an answer",
                        source=f"{self.path}: checks.{one.check}.on_unknown",
                        evidence=(one.reason,),
                    )
                )
            kept.append(replace(one, required=required))
        notes = tuple(self._note(one, today, judged) for one in self.suppressions)
        return tuple(judged), tuple(kept), notes

    def _note(self, one: Suppression, today: str, judged: list[Finding]) -> str:
        about = f"{one.check}{f' on {one.gpu}' if one.gpu else ''} by {one.owner} until {one.until}"
        because = f": {one.reason}" if one.reason else ""
        if one.expired(today):
            return f"suppression expired, no longer applied: {about}{because}"
        count = sum(one.fits(finding) for finding in judged)
        return f"suppressed: {about} ({counted(count, 'finding')} now){because}"


def load(path: str, known_checks: tuple[str, ...]) -> Policy:
    """Read and check the file. Raises PolicyError."""
    from torchdoctor import toml_text

    try:
        raw = named_file.read(path, _MOST_BYTES)
        data = toml_text.parse(raw)
    except OSError as error:
        raise PolicyError(
            f"{path}: cannot be read: {error.strerror or error}; `torchdoctor gate policy learn` creates one"
        ) from error
    except toml_text.TomlRefused as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from error
    text = raw.decode("utf-8")
    if not text.strip():
        raise PolicyError(
            f"{path}: is empty; `torchdoctor gate policy learn` prints a policy on a healthy node, and "
            "nothing where it refuses"
        )
    return replace(_Reader(path, known_checks).policy(data), text=text)


class _Reader:
    def __init__(self, path: str, known_checks: tuple[str, ...]) -> None:
        self.path = path
        self.known_checks = known_checks

    def error(self, key: str, text: str) -> PolicyError:
        return PolicyError(f"{self.path}: {key}: {text}")

    def name(self, key: str, name: str, known: tuple[str, ...]) -> None:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise self.error(key, f"unknown name {name!r}; {hint}")

    def table(self, key: str, value: object, known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(key, f"expected a table, found {value!r}")
        for name in value:
            if known:
                self.name(key, name, known)
        return value

    def policy(self, data: dict[str, Any]) -> Policy:
        self.table("top level", data, _TOP)
        checks = self.table("checks", data.get("checks", {}), self.known_checks)
        on_unknown: dict[str, str] = {}
        weights: dict[str, str] = {}
        for name, value in checks.items():
            entry = self.table(f"checks.{name}", value, _CHECK)
            for key, known, into in (("on_unknown", ON_UNKNOWN, on_unknown), ("weight", _WEIGHTS, weights)):
                if key in entry:
                    if not isinstance(entry[key], str):
                        raise self.error(f"checks.{name}.{key}", f"expected one of {', '.join(known)}")
                    self.name(f"checks.{name}.{key}", entry[key], known)
                    into[name] = entry[key]
        profiles = {}
        for name, value in self.table("profiles", data.get("profiles", {}), ()).items():
            entry = self.table(f"profiles.{name}", value, ("expect", "thresholds"))
            profiles[name] = {
                "expect": self.expect(f"profiles.{name}.expect", entry.get("expect", {})),
                "thresholds": self.thresholds(f"profiles.{name}.thresholds", entry.get("thresholds", {})),
            }
        return Policy(
            self.path,
            self.expect("expect", data.get("expect", {})),
            self.thresholds("thresholds", data.get("thresholds", {})),
            self.required(data.get("required", [])),
            on_unknown,
            weights,
            tuple(self.suppression(at, one) for at, one in enumerate(self.list("suppress", data))),
            profiles,
            self.options(data.get("options", {})),
        )

    def list(self, key: str, data: dict[str, Any]) -> list[Any]:
        found = data.get(key, [])
        if not isinstance(found, list):
            raise self.error(key, f"expected [[{key}]] tables, found {found!r}")
        return found

    def required(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.error("required", "expected a list of checks' names")
        for one in value:
            self.name("required", one, self.known_checks)
        return tuple(value)

    def options(self, value: object) -> dict[str, Any]:
        found = self.table("options", value, _OPTIONS)
        for name in ("remap_pending", "persistence"):
            if name in found and found[name] not in _WEIGHTS:
                raise self.error(f"options.{name}", f"expected one of {', '.join(_WEIGHTS)}")
        if found.get("dcgm", 0) not in _DCGM_LEVELS or isinstance(found.get("dcgm"), bool):
            raise self.error("options.dcgm", "expected a level of dcgmi diag: 1, 2 or 3, or 0 for none")
        if not isinstance(found.get("prefix", ""), str) or not str(found.get("prefix", "")).isascii():
            raise self.error("options.prefix", "expected ASCII text")
        return found

    def expect(self, key: str, value: object) -> dict[str, Any]:
        found = self.table(key, value, _EXPECT)
        for name, given in found.items():
            if name in ("model", "driver", "transport"):
                right, words = isinstance(given, str), "text"
            elif name == "mig":
                right, words = isinstance(given, bool), "true or false"
            elif name == "mounts":
                right = isinstance(given, list) and all(isinstance(one, str) for one in given)
                words = "a list of paths"
            else:
                right = isinstance(given, int) and not isinstance(given, bool) and given >= 0
                words = "a whole number, 0 or more"
            if not right:
                raise self.error(f"{key}.{name}", f"expected {words}, found {given!r}")
        return found

    def thresholds(self, key: str, value: object) -> dict[str, float]:
        found = self.table(key, value, tuple(THRESHOLDS))
        for name, given in found.items():
            if isinstance(given, bool) or not isinstance(given, (int, float)) or not given >= 0:
                raise self.error(f"{key}.{name}", f"expected a number, 0 or more, found {given!r}")
            if name.endswith("_share") and given > 1:
                raise self.error(f"{key}.{name}", f"a share must be between 0 and 1, found {given!r}")
        return found

    def suppression(self, at: int, value: object) -> Suppression:
        key = f"suppress[{at}]"
        entry = self.table(key, value, _SUPPRESSION)
        for name in ("check", "owner", "until"):
            if name not in entry:
                raise self.error(
                    key, f"{name!r} is missing: a suppression needs a check, an owner and an end date"
                )
        until = str(entry["until"])
        try:
            time.strptime(until, "%Y-%m-%d")
        except ValueError:
            raise self.error(f"{key}.until", f"expected a date as YYYY-MM-DD, found {until!r}") from None
        check = str(entry["check"])
        if not check.startswith(("xid", "sxid")):  # also by the tag of one code
            self.name(f"{key}.check", check, self.known_checks)
        if not str(entry["owner"]).strip():
            raise self.error(f"{key}.owner", "expected a name")
        return Suppression(
            check, str(entry["owner"]), until, str(entry.get("reason", "")), str(entry.get("gpu", ""))
        )
