"""Advice on shapes and layouts that only data would prove wrong."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.checks.loading import LOADER
from torchdoctor.lint.constants import number
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import Binding
from torchdoctor.lint.kinds import goes_over_batches, is_loader
from torchdoctor.lint.training import runs_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene


def from_batch(scene: Scene, node: ast.AST) -> bool:
    """Is it a batch of a loader, or the output of a model that is known here?"""
    for value in scene.values(node):
        if isinstance(value, Binding) and value.how == "for" and is_loader(scene, value.value):
            return True
        if isinstance(value, ast.Call) and "module" in scene.kinds(value.func):
            return True
    return False


def _model_output(scene: Scene, node: ast.expr) -> bool:
    """Is it what something out of sight makes of a batch, or a part of the model in forward()?"""
    for value in scene.values(node):
        if not isinstance(value, ast.Call) or not value.args or scene.called(value) or scene.target(value):
            continue
        if isinstance(value.func, ast.Name) and any(_batch(scene, one) for one in value.args):
            return runs_model(scene, value.func)
        function = flow.named_function(value)
        owner = scene.owner(value.func.value) if isinstance(value.func, ast.Attribute) else None
        if owner is not None and function is not None and function.name == "forward":
            return "torch.nn.Module" in scene.bases(owner) and owner is scene.index.class_of.get(
                flow.up(function)
            )
    return False


def _bare(scene: Scene, node: ast.expr) -> bool:
    """``x.squeeze()`` or ``torch.squeeze(x)``, without a dimension."""
    if not isinstance(node, ast.Call) or flow.method(node) != "squeeze" or node.keywords:
        return False
    name = scene.called(node)
    return len(node.args) == (name == "torch.squeeze") and name in ("", "torch.squeeze")


def _all_alike(scene: Scene, around: ast.AST) -> bool:
    """``loss(a.squeeze(), b.squeeze())``: what both lose does not matter."""
    given = around.args if isinstance(around, ast.Call) else []
    return len(given) > 1 and all(_bare(scene, one) for one in given)


def _batch(scene: Scene, node: ast.expr) -> bool:
    return any(
        isinstance(one, Binding) and isinstance(one.node, ast.For) and goes_over_batches(scene, one.node.iter)
        for one in scene.values(node)
    )


class SqueezeNoDim(Check):
    id = "squeeze-no-dim"
    group = 2
    title = "squeeze() without a dimension also drops a batch of one"
    why = """squeeze() removes every dimension of size 1. A last batch with one sample loses its batch
    dimension, and the next operation fails or means something else, once an epoch or only in production."""
    fix = ("Name the dimension: squeeze(-1) or squeeze(dim=1).",)
    words = ("squeeze",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("squeeze"):
            name = scene.called(call)
            given = call.args[0] if name == "torch.squeeze" and call.args else flow.receiver(call)
            if (
                given is not None
                and _bare(scene, call)
                and not _all_alike(scene, flow.up(call))
                and (from_batch(scene, given) or _model_output(scene, given))
            ):
                yield self.at(call, "a batch of one sample would lose its batch dimension", scene)


_TURNS = frozenset(["transpose", "permute", "t", "swapaxes", "swapdims", "movedim", "moveaxis"])


class ViewAfterTranspose(Check):
    id = "view-after-transpose"
    group = 2
    title = "view() of a transposed tensor"
    why = """transpose() and permute() only change strides. view() then raises (view size is not compatible
    with input tensor's size and stride), or, where it happens to work, the elements are in another order
    than a reader thinks."""
    fix = ("Use reshape(), which copies where it must, or contiguous().view().",)
    words = ("view",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("view"):
            base = flow.receiver(call)
            if base is None or scene.called(call) or not call.args:
                continue
            if len(call.args) == 1 and scene.name(call.args[0]).startswith("torch."):
                continue  # another type, not another shape
            if self._turned(scene, base):
                yield self.at(call, "its strides are those of the tensor before", scene)

    def _turned(self, scene: Scene, base: ast.expr) -> bool:
        values = [base]
        if isinstance(base, ast.Name):
            binds = scene.reaching(base)
            if len(binds) != 1 or binds[0].how != "assign" or binds[0].path or binds[0].value is None:
                return False
            values = [binds[0].value]
        return all(self._turns(scene, one) for one in values)

    def _turns(self, scene: Scene, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr in ("mT", "mH", "H") or (node.attr == "T" and not scene.name(node))
        if not isinstance(node, ast.Call) or flow.method(node) not in _TURNS:
            return False
        name = scene.called(node)
        return name.startswith("torch.") if name else isinstance(node.func, ast.Attribute)


# transforms that want a PIL image, and those that want a tensor
_NEEDS_TENSOR = frozenset(("Normalize", "RandomErasing", "LinearTransformation"))
_TO_TENSOR = frozenset(("ToTensor", "PILToTensor"))


class TransformOrder(Check):
    id = "transform-order"
    group = 2
    title = "Image transforms in an order, or with channels, that do not fit"
    why = """ToTensor turns a PIL image (0 to 255, H x W x C) into a tensor (0 to 1, C x H x W). Normalize and
    RandomErasing want the tensor; a second ToTensor raises. OpenCV gives BGR, and a network trained on RGB
    sees red and blue exchanged: its accuracy is a few points lower, and nothing fails."""
    fix = (
        "Order: PIL transforms, ToTensor(), then Normalize() and RandomErasing().",
        "img = cv2.cvtColor(img, cv2.COLOR_BGR2RGB) after cv2.imread().",
    )
    words = ("transforms", "cv2")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(
            "torchvision.transforms.Compose", "torchvision.transforms.transforms.Compose"
        ):
            given = flow.argument(call, 0, "transforms")
            for value in scene.values(given):
                if isinstance(value, ast.List):
                    wrong = self._wrong(scene, value.elts)
                    if wrong is not None:
                        yield self.at(wrong[0], wrong[1], scene)
        for call in scene.calls("torch.from_numpy", "torch.tensor", "torch.as_tensor"):
            if call.args and self._bgr(scene, call.args[0]):
                yield self.at(call, "cv2.imread() gives BGR", scene)
        for call in scene.index.calls:
            if (
                isinstance(call.func, ast.Call)
                and call.args
                and self._bgr(scene, call.args[0])
                and scene.called(call.func).startswith("torchvision.transforms.")
            ):
                yield self.at(call, "cv2.imread() gives BGR", scene)

    def _wrong(self, scene: Scene, parts: list[ast.expr]) -> tuple[ast.AST, str] | None:
        tensor = False
        begun = False
        for part in parts:
            name = scene.called(part)
            if not name.startswith("torchvision.transforms."):
                return None
            plain = name.rpartition(".")[2]
            if plain in _TO_TENSOR:
                if tensor:
                    return part, "it is a tensor already"
                tensor = begun = True
            elif plain == "ToPILImage":
                tensor, begun = False, True
            elif plain in _NEEDS_TENSOR and not tensor:
                later = any(scene.called(one).rpartition(".")[2] in _TO_TENSOR for one in parts)
                if later or begun:
                    return part, f"{plain} wants a tensor, and stands before ToTensor()"
        return None

    def _bgr(self, scene: Scene, node: ast.expr) -> bool:
        values = scene.values(node)
        return bool(values) and all(
            isinstance(one, ast.Call)
            and scene.called(one) == "cv2.imread"
            and (len(one.args) == 1 or scene.name(one.args[1]) == "cv2.IMREAD_COLOR")
            and not one.keywords
            for one in values
        )


class GridAlignCorners(Check):
    id = "grid-align-corners"
    group = 2
    title = "The corners of a grid are not said to be aligned or not"
    why = """The default of align_corners changed in torch 1.3 from True to False. Weights trained with one
    and used with the other sample between other pixels; affine_grid and grid_sample must agree."""
    fix = ("Give align_corners= to both, as it was in training.",)
    words = ("grid_sample", "affine_grid")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for name, at in (("grid_sample", 4), ("affine_grid", 2)):
            for call in scene.calls(f"torch.nn.functional.{name}"):
                if flow.argument(call, at, "align_corners") is None and not flow.spread(call):
                    yield self.at(call, "align_corners= is left to the version of torch", scene)


_BATCH = ("batch_size", "batch", "bs", "b", "bsz")
_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


class BatchFirst(Check):
    id = "batch-first"
    group = 2
    title = "An RNN without batch_first gets the batch first"
    why = """By default nn.LSTM, GRU and RNN take (sequence, batch, features). Given (batch, sequence,
    features) they run over the batch as if it were time: it fits whatever the sizes are, mixes the samples,
    and learns little."""
    fix = (
        "Say batch_first=True where the layer is made.",
        "Or give it x.transpose(0, 1), and read the output so.",
    )
    words = ("LSTM", "GRU", "RNN")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.index.calls:
            if scene.called(call) or not call.args:
                continue
            made = [one for one in scene.values(call.func) if isinstance(one, ast.Call)]
            if not made or any(scene.called(one) not in _RECURRENT for one in made):
                continue
            if any(flow.argument(one, 4, "batch_first") is not None or flow.spread(one) for one in made):
                continue
            says = self._batch_first(scene, call, call.args[0])
            if says:
                yield self.at(call, says, scene)

    def _batch_first(self, scene: Scene, call: ast.Call, given: ast.expr) -> str:
        for value in scene.values(given):
            if isinstance(value, Binding) and value.how == "for" and self._loader(scene, value.value):
                return "a batch of a loader has the batch first"
            if (
                isinstance(value, ast.Call)
                and flow.method(value) in ("view", "reshape")
                and value.args
                and {"batch_size", "batch", "bs", "B", "bsz"} & flow.names_in(value.args[0])
            ):
                return "its input is viewed with the batch first"
        if isinstance(given, ast.Name):
            found = self._sizes(scene, call, given.id)
            if found:
                return found
            return self._last_step(scene, call)
        return ""

    def _loader(self, scene: Scene, node: ast.AST | None) -> bool:
        """A loader that puts samples together itself: without a collate_fn, in batches or over tensors."""
        for value in scene.values(node):
            if isinstance(value, ast.Call) and scene.called(value) == LOADER:
                data = scene.values(flow.argument(value, 0, "dataset"))
                plain = flow.argument(value, 6, "collate_fn") is None
                size = number(scene, flow.argument(value, 1, "batch_size"))
                return plain and (
                    (size is not None and not flow.spread(value))
                    or any(
                        isinstance(one, ast.Call) and scene.called(one) == "torch.utils.data.TensorDataset"
                        for one in data
                    )
                )
        return False

    def _sizes(self, scene: Scene, call: ast.Call, name: str) -> str:
        """``batch_size = x.size(0)`` or ``B, T, C = x.shape`` before the call, x being what it is given."""
        root = flow.named_function(call) or scene.tree
        for node in flow.walk(root):
            if not isinstance(node, ast.Assign) or flow.start(node) > flow.start(call):
                continue
            text = ast.unparse(node.value)
            target = node.targets[0]
            if (
                isinstance(target, ast.Name)
                and text in (f"{name}.size(0)", f"{name}.shape[0]")
                and target.id.lower() in _BATCH
            ):
                return "its first dimension is called the batch"
            if (
                isinstance(target, ast.Tuple)
                and text in (f"{name}.shape", f"{name}.size()")
                and len(target.elts) == 3
            ):
                first = target.elts[0]
                if isinstance(first, ast.Name) and first.id.lower() in (*_BATCH, "n"):
                    return "its first dimension is called the batch"
        return ""

    def _last_step(self, scene: Scene, call: ast.Call) -> str:
        """``out[:, -1]`` of the output: the last step of the second dimension."""
        holder = flow.up(call)
        if not isinstance(holder, ast.Assign) or not isinstance(holder.targets[0], ast.Tuple):
            return ""
        out = holder.targets[0].elts[0]
        root = flow.named_function(call) or scene.tree
        for node in flow.walk(root):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and isinstance(out, ast.Name)
                and node.value.id == out.id
                and ast.unparse(node.slice).strip("()") in (":, -1", ":, -1, :")
                and any(one.node is holder for one in scene.reaching(node.value))
            ):
                return "the last step is read from the second dimension of its output"
        return ""
