"""What DDP does not raise on, or not always, but gets wrong, and what is worth knowing before wrapping."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.ddp.observation import Observation, Parameter
from torchdoctor.ddp.predict import Kind, Raised, Setting
from torchdoctor.ddp.wording import at, names
from torchdoctor.model import Blame, CheckResult, Evidence, Verdict, counted

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def warnings(seen: Observation, predicted: dict[Setting, Raised | None]) -> Iterator[CheckResult]:
    """Results that do not come from a prediction."""
    yield from _left_out(seen, predicted)
    yield from _outputs(seen)
    yield from _changed(seen)
    yield from _devices(seen, predicted)
    yield from _norms(seen)
    yield from _registered(seen)
    yield from _loss(seen)


def _warn(
    check: str, title: str, observed: str, evidence: tuple[Evidence, ...], action: str, fail: bool = False
) -> CheckResult:
    verdict = Verdict.FAIL if fail else Verdict.WARN
    return CheckResult(check, verdict, title, Blame.USER, observed=observed, evidence=evidence, action=action)


def never_graded(seen: Observation) -> tuple[Parameter, ...]:
    """Parameters that got no gradient in any batch; none when a batch did not come to its end."""
    if not _complete(seen):
        return ()
    reduced = (item for item in seen.parameters if item.reduced)
    got = [batch.graded for batch in seen.batches]
    return tuple(item for number, item in enumerate(reduced) if not any(number in one for one in got))


def _left_out(seen: Observation, predicted: dict[Setting, Raised | None]) -> Iterator[CheckResult]:
    """Parameters without a gradient, in every batch and in some.

    Those that are told already, because DDP raises on them, are not told again.
    """
    if not _complete(seen):
        return
    reduced = [item for item in seen.parameters if item.reduced]
    got = [batch.graded for batch in seen.batches]
    told = {name for one in predicted.values() if one and one.kind is Kind.UNUSED for name in one.parameters}
    never = [item for item in never_graded(seen) if item.name not in told]
    if never:
        words = [item.name + (f" (also {', '.join(item.aliases)})" if item.aliases else "") for item in never]
        yield _warn(
            "ddp-no-gradient",
            "Parameters that get no gradient in any batch",
            names(words),
            (Evidence(f"in no batch: {names(words, 200)}"),),
            "Use them in the loss, remove them, or requires_grad_(False) on them before wrapping.",
        )
    some = []
    for number, item in enumerate(reduced):
        missing = [str(index) for index, one in enumerate(got, 1) if number not in one]
        if missing and len(missing) < len(got):
            some.append((item.name, missing))
    if some:
        yield _warn(
            "ddp-branch",
            "A branch leaves parameters out in some batches",
            names([f"{name} (no gradient in batch {', '.join(missing)})" for name, missing in some]),
            tuple(
                Evidence(f"{name}: no gradient in batch {', '.join(missing)}") for name, missing in some[:200]
            ),
            "DistributedDataParallel(model, find_unused_parameters=True), or let both branches take part: "
            "add 0 * (sum of the parameters of the other one) to the loss. Never static_graph=True.",
        )


def _outputs(seen: Observation) -> Iterator[CheckResult]:
    if not _complete(seen):
        return
    paths = dict.fromkeys(one.path for batch in seen.batches for one in batch.outputs)
    lost = [
        path
        for path in paths
        if not any(one.path == path and one.reaches for batch in seen.batches for one in batch.outputs)
    ]
    hidden = tuple(dict.fromkeys(path for batch in seen.batches for path in batch.hidden))
    if lost:
        yield _warn(
            "ddp-output-unused",
            "Outputs of forward() that do not reach the loss",
            names(lost),
            tuple(Evidence(f"{path}: the loss does not depend on it") for path in lost),
            "Add them to the loss, do not return them, or return them detached: .detach().",
        )
    if hidden:
        yield _warn(
            "ddp-output-hidden",
            "Outputs that DDP cannot find",
            names(hidden),
            tuple(
                Evidence(f"{path}: an attribute of an object that DDP does not look into") for path in hidden
            ),
            "Return tensors, lists, tuples, dicts or dataclasses of them; with anything else "
            "find_unused_parameters=True takes every parameter behind it for unused.",
        )


def _complete(seen: Observation) -> bool:
    return bool(seen.batches) and all(batch.error is None for batch in seen.batches)


def _changed(seen: Observation) -> Iterator[CheckResult]:
    written = {name: place for batch in reversed(seen.batches) for name, place in batch.written}
    if written:
        yield _warn(
            "ddp-parameters-diverged",
            "Parameters are changed in place while the model runs",
            names(list(written)),
            tuple(
                Evidence(
                    f"{name} is written to" + (f" at {at(place)}: {place.code}" if place else ""),
                    place.file if place else None,
                    place.line if place else None,
                )
                for name, place in written.items()
            ),
            "DDP equals parameters once, when it wraps. Make the change the same on all ranks, or make "
            "it in the "
            "optimizer step.",
        )
    buffers = _own_buffers(seen)
    if buffers:
        yield _warn(
            "ddp-buffers",
            "Buffers are changed in forward",
            names(buffers),
            tuple(Evidence(f"buffer {name} is changed in forward") for name in buffers),
            "Before each forward DDP overwrites the buffers of all ranks with those of rank 0: what "
            "other ranks "
            "wrote is lost. Average it yourself (all_reduce), or wrap with broadcast_buffers=False.",
        )


def _own_buffers(seen: Observation) -> list[str]:
    """Changed buffers that are no statistics of a normalization."""
    found = dict.fromkeys(name for batch in seen.batches for name in batch.buffers)
    return [name for name in found if name.rpartition(".")[2] not in _STATISTICS]


def _devices(seen: Observation, predicted: dict[Setting, Raised | None]) -> Iterator[CheckResult]:
    plain = predicted[Setting.PLAIN]
    devices: dict[str, list[str]] = {}
    for item in seen.parameters:
        if not item.ignored:
            devices.setdefault(item.device, []).append(item.name)
    if len(devices) > 1 and not (plain is not None and plain.stage == "wrap"):
        yield _warn(
            "ddp-parameters-on-devices",
            "Parameters on several devices",
            ", ".join(f"{len(names_)} on {device}" for device, names_ in devices.items()),
            tuple(Evidence(f"{device}: {names(names_, 10)}") for device, names_ in devices.items()),
            "Wrap it without device_ids and output_device: with them DDP raises. For one process a GPU "
            "put the "
            "whole model on the rank's own card.",
        )


def _norms(seen: Observation) -> Iterator[CheckResult]:
    found = {norm.name: norm for batch in seen.batches for norm in batch.norms}
    if not found:
        return
    single = any(norm.values == 1 for norm in found.values())
    yield _warn(
        "batchnorm-one-value",
        "BatchNorm is given a batch of one" + (", which raises in training" if single else ""),
        names(list(found)),
        tuple(
            Evidence(f"{norm.name}: batch of {norm.batch}, {counted(norm.values, 'value')} per channel")
            for norm in found.values()
        ),
        "Give each rank more than one sample (drop_last=True for the last batch), or convert with "
        "nn.SyncBatchNorm.convert_sync_batchnorm(model), which counts the samples of all ranks.",
        fail=single,
    )


def _registered(seen: Observation) -> Iterator[CheckResult]:
    def all_of(field: str) -> list[str]:
        return list(dict.fromkeys(name for batch in seen.batches for name in getattr(batch, field)))

    words = {
        "added": "is registered in forward, after wrapping: DDP does not know it",
        "removed": "is replaced or removed in forward: DDP waits for its gradient in vain",
        "frozen": "is frozen in forward (requires_grad off)",
        "unfrozen": "is unfrozen in forward: DDP does not average its gradient",
    }
    evidence = [Evidence(f"{name} {text}") for field, text in words.items() for name in all_of(field)]
    if evidence:
        yield _warn(
            "ddp-parameters-changed-after-wrapping",
            "The set of trainable parameters changes in forward",
            "; ".join(item.text for item in evidence)[:500],
            tuple(evidence),
            "Create, freeze and unfreeze parameters before wrapping; after a change, wrap it again.",
        )


def _loss(seen: Observation) -> Iterator[CheckResult]:
    if not seen.grad_enabled:
        yield _warn(
            "grad-mode-disabled",
            "Gradients are switched off for the whole process",
            "torch.is_grad_enabled() is False",
            (Evidence("torch.is_grad_enabled() is False before the model is called"),),
            "Find the line that does it (torchdoctor globals MODULE), or torch.set_grad_enabled(True).",
            fail=True,
        )
    odd = [(number, batch.loss) for number, batch in enumerate(seen.batches, 1) if not batch.loss_finite]
    if odd:
        yield _warn(
            "loss-nan",
            "The loss is not finite",
            ", ".join(f"batch {number}: {loss}" for number, loss in odd),
            tuple(Evidence(f"batch {number}: the loss is {loss}") for number, loss in odd),
            "Look at the inputs and the loss function: DDP would average the nan into all ranks.",
        )


def remarks(seen: Observation) -> Iterator[str]:
    """Notes: true, and mostly harmless."""
    if not seen.training:
        yield "the model is in eval mode; dropout and batch norm behave otherwise in training"
    statistics = sum(
        name.rpartition(".")[2] in _STATISTICS
        for name in {n for batch in seen.batches for n in batch.buffers}
    )
    if statistics:
        yield (
            f"{counted(statistics, 'running statistic')} of normalization layers changed in forward; DDP "
            "keeps those of rank 0, and calling the model twice before one backward then fails "
            "(ddp-buffer-version)"
        )
    shared = [f"{item.name} = {', '.join(item.aliases)}" for item in seen.parameters if item.aliases]
    if shared:
        yield f"shared parameters, reduced once: {names(shared, 10)}"
    if _complete(seen):
        reduced = [item.name for item in seen.parameters if item.reduced]
        fired = {number for batch in seen.batches for number, _ in batch.events}
        graded = {number for batch in seen.batches for number in batch.graded}
        empty = [reduced[number] for number in sorted(fired - graded)]
        if empty:
            yield (
                f"a backward function gives None for {names(empty, 10)}: DDP sees them as ready, with a zero "
                "gradient"
            )
    ignored = [item.name for item in seen.parameters if item.ignored and item.trainable]
    if ignored:
        yield f"left out of DDP by _ddp_params_and_buffers_to_ignore, not averaged: {names(ignored, 10)}"
    complex_ = [item.name for item in seen.parameters if item.reduced and item.dtype.startswith("complex")]
    if complex_:
        yield f"complex parameters: {names(complex_, 10)}"
    if seen.batches and len(seen.batches) == 1:
        yield "one batch was examined; branches that other batches take are seen with a list of batches"
