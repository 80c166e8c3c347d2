"""One forward and one backward per batch, and what DistributedDataParallel would see of them.

Gradients are dropped the moment they are complete, so that they never stand in memory together.
"""

from __future__ import annotations

import os
import traceback

import torch
from torch import nn

MYPY = False
if MYPY:
    from collections.abc import Callable
    from typing import Any

    from torchdoctor.ddp.child import keep, outputs
else:
    try:
        from . import keep, outputs
    except ImportError:  # run from the child program, where torchdoctor is not installed
        import keep
        import outputs

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NORMS = (nn.modules.batchnorm._BatchNorm,)


class Mistake(Exception):
    """The call is wrong: what was given is not a model, batches and a loss function."""


def batches_of(inputs: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The batches as positional and named arguments. Raises Mistake."""
    listed = inputs if isinstance(inputs, list) else [inputs]
    if not listed:
        raise Mistake(
            "inputs is an empty list; expected a tuple of positional arguments, or a list of such tuples"
        )
    found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for number, batch in enumerate(listed):
        if isinstance(batch, tuple):
            found.append((batch, {}))
        elif isinstance(batch, torch.Tensor):
            found.append(((batch,), {}))
        elif hasattr(batch, "keys") and hasattr(batch, "__getitem__"):
            named = {key: batch[key] for key in batch.keys()}  # noqa: SIM118 - not every mapping iterates keys
            if not all(isinstance(key, str) for key in named):
                raise Mistake(f"batch {number} is a mapping whose keys are not all names of arguments")
            found.append(((), named))
        else:
            raise Mistake(
                f"batch {number} is of type {type(batch).__name__}; expected a tuple of positional "
                f"arguments, "
                "a dict of named ones, or one tensor"
            )
    return found


def module_of(model: Any) -> nn.Module:
    """The module that DDP would wrap. Raises Mistake."""
    if not isinstance(model, nn.Module):
        raise Mistake(f"model is of type {type(model).__name__}; expected a torch.nn.Module")
    for _ in range(4):
        if isinstance(model, nn.parallel.DistributedDataParallel):
            model = model.module
        elif type(model).__name__ == "OptimizedModule" and isinstance(
            getattr(model, "_orig_mod", None), nn.Module
        ):
            model = model._orig_mod
    return model  # type: ignore[no-any-return]


def parameters_of(model: nn.Module) -> tuple[list[tuple[str, nn.Parameter]], list[dict[str, Any]]]:
    """The parameters DDP reduces, in its order, and a description of all."""
    ignored = set(getattr(model, "_ddp_params_and_buffers_to_ignore", ()))
    names: dict[int, list[str]] = {}
    sparse: dict[int, bool] = {}
    all_: dict[int, nn.Parameter] = {}
    kept: dict[int, bool] = {}
    for prefix, module in model.named_modules():
        for own, parameter in module._parameters.items():
            if parameter is None:
                continue
            key = id(parameter)
            names.setdefault(key, []).append(f"{prefix}.{own}" if prefix else own)
            if key not in all_ or not kept[key]:
                sparse[key] = isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse
                kept[key] = f"{prefix}.{own}" not in ignored
            all_[key] = parameter
    reduced: list[tuple[str, nn.Parameter]] = []
    described: list[dict[str, Any]] = []
    lazy = getattr(nn.parameter, "UninitializedTensorMixin", ())
    for key, parameter in all_.items():
        uninitialized = isinstance(parameter, lazy)
        mine = kept[key] and parameter.requires_grad
        if mine:
            reduced.append((names[key][0], parameter))
        described.append(
            {
                "name": names[key][0],
                "aliases": names[key][1:],
                "shape": [] if uninitialized else list(parameter.shape),
                "dtype": str(parameter.dtype).replace("torch.", ""),
                "device": str(parameter.device),
                "trainable": parameter.requires_grad,
                "reduced": mine,
                "ignored": names[key][0] in ignored,
                "sparse": sparse[key],
                "uninitialized": uninitialized,
            }
        )
    return reduced, described


def examine(model: Any, inputs: Any, loss_fn: Any = None) -> dict[str, Any]:
    """What one forward and backward per batch show; everything is left as it was. Raises Mistake."""
    module = module_of(model)
    batches = batches_of(inputs)
    if loss_fn is not None and not callable(loss_fn):
        raise Mistake(f"loss_fn is of type {type(loss_fn).__name__}; expected a callable, or None")
    reduced, described = parameters_of(module)
    seen: dict[str, Any] = {
        "torch": torch.__version__,
        "parameters": described,
        "training": module.training,
        "grad_enabled": torch.is_grad_enabled(),
        "syncbn_cpu": [
            name
            for name, part in module.named_modules()
            if isinstance(part, nn.SyncBatchNorm) and all(p.device.type == "cpu" for p in module.parameters())
        ],
        "batches": [],
    }
    if any(item["uninitialized"] for item in described):
        return seen  # a forward would fill them in, which cannot be taken back
    modules = [module] + ([loss_fn] if isinstance(loss_fn, nn.Module) else [])
    with keep.Kept(modules, [list(batch) + list(named.values()) for batch, named in batches]) as kept:
        for name, parameter in module.named_parameters():
            kept.written.watch("parameter", name, parameter)
        for name, buffer in module.named_buffers():
            kept.written.watch("buffer", name, buffer)
        for batch, named in batches:
            one = _Step(module, reduced, kept)
            seen["batches"].append(one.run(batch, named, loss_fn))
            if one.result["error"] is not None:
                break
    return seen


class _Step:
    """One batch."""

    def __init__(self, module: nn.Module, reduced: list[tuple[str, nn.Parameter]], kept: keep.Kept) -> None:
        self.module = module
        self.reduced = reduced
        self.index = {id(parameter): number for number, (_, parameter) in enumerate(reduced)}
        self.kept = kept
        self.events: list[list[int]] = []
        self.early: list[int] = []
        self.graded: set[int] = set()
        self.sparse: set[int] = set()
        self.counting = False
        self.norms: list[dict[str, Any]] = []
        self.result: dict[str, Any] = {
            "events": self.events, "early": self.early, "graded": [], "reachable": [], "sunk": [],
            "sink_runs": False, "outputs": [],
            "hidden": [], "sparse": [], "loss": None, "loss_finite": True, "error": None, "buffers": [],
            "written": [], "norms": self.norms, "added": [], "removed": [], "frozen": [], "unfrozen": [],
        }  # fmt: skip

    def run(self, batch: tuple[Any, ...], named: dict[str, Any], loss_fn: Any) -> dict[str, Any]:
        handles: list[Any] = [
            part.register_forward_pre_hook(self._norm(name))
            for name, part in self.module.named_modules()
            if isinstance(part, _NORMS)
        ]
        nodes = []
        for number, (_, parameter) in enumerate(self.reduced):
            if not parameter.requires_grad:
                continue  # an earlier batch froze it: no gradient will come
            with torch.enable_grad():
                view: Any = parameter.view_as(parameter).grad_fn
                node = view.next_functions[0][0]
            handles.append(node.register_hook(self._ready(number, parameter)))
            nodes.append(node)
        before = dict(self.module.named_buffers())
        versions = {name: buffer._version for name, buffer in before.items()}
        known = {id(p): (name, p.requires_grad) for name, p in self.module.named_parameters()}
        seen = len(self.kept.written.seen)
        stage = ["forward"]
        try:
            self._forward_and_backward(batch, named, loss_fn, stage)
        except Exception as error:
            self.result["error"] = _error(stage[0], error)
        finally:
            self.counting = False
            for handle in handles:
                handle.remove()
        self._changes(before, versions, known, seen)
        self.result["graded"] = sorted(self.graded)
        self.result["sparse"] = sorted(self.sparse)
        return self.result

    def _forward_and_backward(self, batch: Any, named: Any, loss_fn: Any, stage: list[str]) -> None:
        result = self.result
        out = self.module(*batch, **named)
        pairs = list(outputs.found(out))
        ends = [(path, outputs.edge(tensor)) for path, tensor in pairs]
        nodes, _ = outputs.walk([end[0] for _, end in ends if end is not None])
        result["reachable"] = self._numbers(outputs.leaves(nodes))
        result["hidden"] = [path for path, tensor in outputs.hidden(out) if tensor.requires_grad]
        through = outputs.sunk(out)
        direct = [tensor for tensor in through if tensor.grad_fn is None]
        below, _ = outputs.walk([tensor.grad_fn for tensor in through])
        result["sunk"] = self._numbers([*outputs.leaves(below), *direct])
        sink = [outputs.edge(tensor) for tensor in through]
        stage[0] = "loss"
        loss = loss_of(out, loss_fn)
        del out, pairs, through, direct
        stage[0] = "loss-type"
        if not isinstance(loss, torch.Tensor):
            raise TypeError(f"the loss is of type {type(loss).__name__}; expected a tensor with one element")
        if loss.numel() != 1:
            raise ValueError(f"the loss has shape {tuple(loss.shape)}; expected one element")
        stage[0] = "loss-grad"
        if not loss.requires_grad:
            raise RuntimeError("the loss does not require a gradient: no part of it depends on a parameter")
        used, edges = outputs.walk([loss.grad_fn])
        if loss.grad_fn is not None:
            edges.add((id(loss.grad_fn), loss.output_nr))
        result["outputs"] = [
            {"path": path, "reaches": (id(end[0]), end[1]) in edges, "used": id(end[0]) in used}
            for path, end in ends
            if end is not None
        ]
        result["sink_runs"] = any(end is not None and (id(end[0]), end[1]) in edges for end in sink)
        for leaf in outputs.leaves(used):
            self.kept.stash(leaf)
        del used, nodes, below
        if loss.device.type != "meta":
            value = loss.detach()
            result["loss_finite"] = bool(torch.isfinite(value).all())
            result["loss"] = str(value.item())
        stage[0] = "backward"
        self.counting = True
        loss.backward()  # type: ignore[no-untyped-call]

    def _numbers(self, tensors: list[torch.Tensor]) -> list[int]:
        return sorted({self.index[id(tensor)] for tensor in tensors if id(tensor) in self.index})

    def _ready(self, number: int, parameter: nn.Parameter) -> Callable[..., None]:
        task = getattr(torch._C, "_current_graph_task_id", lambda: -1)

        def ready(*_: Any) -> None:
            grad = parameter.grad
            parameter.grad = None
            if not self.counting:
                self.early.append(number)
                return
            self.events.append([number, task()])
            if grad is not None:
                self.graded.add(number)
                if grad.layout != torch.strided:
                    self.sparse.add(number)

        return ready

    def _norm(self, name: str) -> Callable[..., None]:
        def look(part: Any, args: Any) -> None:
            if args and isinstance(args[0], torch.Tensor) and args[0].dim() >= 2 and part.training:
                values = args[0].numel() // max(1, args[0].shape[1])
                if args[0].shape[0] == 1 or values == 1:
                    self.norms.append({"name": name, "batch": int(args[0].shape[0]), "values": int(values)})

        return look

    def _changes(self, before: Any, versions: Any, known: Any, seen: int) -> None:
        result = self.result
        after: dict[str, Any] = dict(self.module.named_buffers())
        saved = self.kept.written.saved
        writes = self.kept.written.seen[seen:]
        changed = {item["name"] for item in writes if item["kind"] == "buffer"}
        for name, buffer in before.items():
            now = after.get(name)
            if (
                now is None
                or after.get(name) is not buffer
                or now._version != versions[name]
                or (id(buffer) in saved and not torch.equal(saved[id(buffer)][1], now))
            ):
                changed.add(name)
        result["buffers"] = [name for name in before if name in changed]
        shown: dict[str, Any] = {}
        for item in writes:
            if item["kind"] == "parameter":
                shown.setdefault(item["name"], item["at"])
        result["written"] = [{"name": name, "at": at} for name, at in shown.items()]
        now = {id(p): (name, p.requires_grad) for name, p in self.module.named_parameters()}
        result["added"] = [name for key, (name, _) in now.items() if key not in known]
        result["removed"] = [name for key, (name, _) in known.items() if key not in now]
        result["frozen"] = [n for k, (n, on) in now.items() if k in known and known[k][1] and not on]
        result["unfrozen"] = [n for k, (n, on) in now.items() if k in known and not known[k][1] and on]


def loss_of(out: Any, loss_fn: Any) -> Any:
    """The loss: loss_fn(outputs); without one the output's own ``loss``, a scalar, or the sum of all."""
    if loss_fn is not None:
        return loss_fn(out)
    own = out.get("loss") if isinstance(out, dict) else getattr(out, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    if isinstance(out, torch.Tensor) and out.numel() == 1:
        return out
    parts = [tensor for _, tensor in (*outputs.found(out), *outputs.hidden(out)) if tensor.requires_grad]
    if not parts:
        raise RuntimeError("no output of forward() requires a gradient, and no loss_fn was given")
    sums = [(part.abs() if part.is_complex() else part).float().sum() for part in parts]
    return sum(sums[1:], sums[0])


def _error(stage: str, error: BaseException) -> dict[str, Any]:
    frames = [
        {"file": f.filename, "line": f.lineno, "function": f.name, "code": (f.line or "")[:300]}
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith((_HERE, _TORCH, "<frozen"))
    ]
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": _words(error),
        "stack": frames[-30:],
        "traceback": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-20000:],
    }


def _words(error: BaseException) -> str:
    try:
        return str(error)[:4000]
    except Exception:
        return "(its message cannot be shown)"
