"""Parameters: how they are initialised, moved and changed."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.graph import leaf
from torchdoctor.lint.index import Binding, dotted_text
from torchdoctor.lint.names import words
from torchdoctor.lint.shapes import dimensions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_INITS = frozenset(
    f"torch.nn.init.{name}"
    for name in words(
        "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ xavier_uniform "
        "xavier_normal kaiming_uniform kaiming_normal"
    )
)
_NORMS = frozenset(
    f"torch.nn.{name}"
    for name in words(
        "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm InstanceNorm2d SyncBatchNorm RMSNorm"
    )
)
_IN_PLACE = words(
    "add_ sub_ mul_ div_ fill_ zero_ copy_ clamp_ clamp_min_ clamp_max_ normal_ uniform_ "
    "exponential_ pow_ sqrt_ lerp_ addcmul_ addcdiv_ trunc_normal_ bernoulli_ masked_fill_ "
    "index_fill_ round_ neg_ abs_ sigmoid_ tanh_"
)


def isinstance_of(scene: Scene, node: ast.AST, text: str) -> set[str]:
    """The classes that tests around a node say ``text`` is an object of."""
    found: set[str] = set()
    for test, arm in flow.guards(node):
        if isinstance(test, ast.If) and arm == "body":
            for one in ast.walk(test.test):
                found |= _told_class(scene, one, text)
    return found


def _told_class(scene: Scene, node: ast.AST, text: str) -> set[str]:
    if (
        isinstance(node, ast.Call)
        and flow.method(node) == "isinstance"
        and len(node.args) == 2
        and dotted_text(node.args[0]) == text
    ):
        classes = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        return {scene.name(one) or "?" for one in classes}
    if (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Call)
        and flow.method(node.left) == "type"
        and node.left.args
        and dotted_text(node.left.args[0]) == text
    ):
        right = node.comparators[0]
        classes = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
        return {scene.name(one) or "?" for one in classes}
    return set()


class InitOneDimension(Check):
    id = "init-one-dimension"
    title = "xavier_ or kaiming_ initialises a parameter of one dimension"
    why = """Fan in and fan out are products of dimensions; a bias or the weight of a norm has but one:
    ValueError, Fan in and fan out can not be computed for tensor with fewer than 2 dimensions."""
    fix = (
        "Use nn.init.zeros_ for a bias, nn.init.ones_ for the weight of a norm.",
        "In a loop over parameters, test p.dim() > 1 first.",
    )
    cause = "init-fan-dims"
    words = ("xavier", "kaiming")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(*_INITS):
            given = flow.argument(call, 0, "tensor")
            if given is None:
                continue
            says = self._flat(scene, call, given)
            if says:
                yield self.at(call, says, scene)

    def _flat(self, scene: Scene, call: ast.Call, given: ast.expr) -> str:
        if isinstance(given, ast.Attribute) and given.attr == "data":
            given = given.value
        tested = any(
            flow.names_in(test.test) & {"dim", "ndim", "ndimension", "shape", "size", "ndims"}
            for test, _ in flow.guards(call)
            if isinstance(test, ast.If)
        )
        if tested:
            return ""
        if (
            isinstance(given, ast.Attribute)
            and re.fullmatch(r"bias(?:_[ih]h_l\d+)?", given.attr)
            and not scene.attribute_binds(given)
        ):
            return f"{ast.unparse(given)[:50]} has one dimension"
        if isinstance(given, ast.Attribute) and given.attr == "weight":
            told = isinstance_of(scene, call, dotted_text(given.value))
            made = {scene.called(one) for one in scene.values(given.value) if isinstance(one, ast.Call)}
            if (told and told <= _NORMS) or (not told and made and made <= _NORMS):
                return "the weight of a norm has one dimension"
        if isinstance(given, ast.Name) and self._named_bias(scene, call, given):
            return f"{given.id} is a bias, of one dimension"
        return self._by_shape(scene, given)

    def _by_shape(self, scene: Scene, given: ast.expr) -> str:
        values = scene.values(given)
        for value in values:
            if (
                not isinstance(value, ast.Call)
                or scene.called(value) != "torch.nn.Parameter"
                or not value.args
            ):
                return ""
            inner = scene.values(value.args[0])
            sizes = (
                dimensions(scene, inner[0]) if len(inner) == 1 and isinstance(inner[0], ast.Call) else None
            )
            if sizes is None and len(inner) == 1 and isinstance(inner[0], ast.Call):
                sizes = self._one_name(scene, inner[0])
            if sizes is None or len(sizes) != 1:
                return ""
        return "the parameter is made with one dimension" if values else ""

    def _one_name(self, scene: Scene, call: ast.Call) -> list[ast.expr] | None:
        """``torch.empty(d)`` with a name that is used as a number beside it."""
        if scene.called(call) not in (
            "torch.empty",
            "torch.zeros",
            "torch.ones",
            "torch.randn",
            "torch.rand",
        ):
            return None
        if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name):
            return None
        name = call.args[0].id.lower()
        return (
            list(call.args)
            if name.endswith(("dim", "size", "features", "d", "n", "channels")) and "shape" not in name
            else None
        )

    def _named_bias(self, scene: Scene, call: ast.Call, given: ast.Name) -> bool:
        """``for name, p in named_parameters(): if "bias" in name: init(p)``."""
        binds = scene.reaching(given)
        if not binds or any(one.how != "for" or one.path != (1,) for one in binds):
            return False
        for test, arm in flow.guards(call):
            if not isinstance(test, ast.If) or arm != "body" or not isinstance(test.test, ast.Compare):
                continue
            left = test.test.left
            if isinstance(left, ast.Constant) and left.value in ("bias", ".bias"):
                return isinstance(test.test.ops[0], ast.In)
        return False


class InplaceOnLeaf(Check):
    id = "inplace-on-leaf"
    title = "A parameter is changed in place where gradients are on"
    why = """A leaf that requires grad must not be overwritten while autograd records: RuntimeError, a leaf
    Variable that requires grad is being used in an in-place operation."""
    fix = (
        "Change it under `with torch.no_grad():`.",
        "To initialise, use torch.nn.init, which does so.",
    )
    cause = "inplace-leaf"
    words = ("torch",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods(*_IN_PLACE):
            base = flow.receiver(call)
            if base is not None and not scene.called(call):
                yield from self._tell(scene, call, base)
        for node in scene.index.assigns:
            if isinstance(node, ast.AugAssign):
                target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
                yield from self._tell(scene, node, target)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                yield from self._tell(scene, node, node.targets[0].value)

    def _tell(self, scene: Scene, place: ast.AST, base: ast.expr) -> Iterator[Finding]:
        says = self._leaf(scene, place, base)
        if (
            says
            and gradients_off(scene, place) is None
            and self._runs(scene, place)
            and not self._frozen(scene, place)
        ):
            yield self.at(place, says, scene)

    def _runs(self, scene: Scene, place: ast.AST) -> bool:
        """Does this file itself run its function? Who calls it from elsewhere may switch gradients off."""
        function = flow.named_function(place)
        if function is None or function.name in ("__init__", "forward"):
            return True
        uses = [*scene.index.attributes.get(function.name, ()), *scene.uses(function.name)]
        return any(not flow.inside(one, function) for one in uses)

    def _leaf(self, scene: Scene, place: ast.AST, base: ast.expr) -> str:
        if isinstance(base, ast.Attribute) and base.attr in ("weight", "bias"):
            text = dotted_text(base.value)
            told = isinstance_of(scene, place, text) if text else set()
            layer = bool(told) and all(one.startswith("torch.nn.") for one in told)
            if (
                layer or ("layer" in scene.kinds(base.value) and scene.is_a(base.value, "layer"))
            ) and not scene.attribute_binds(base):
                return f"{ast.unparse(base)[:50]} is a parameter"
        if not isinstance(base, ast.Name | ast.Attribute):
            return ""
        binds = scene.reaching(base)
        if binds and all(self._of_parameters(one) for one in binds):
            return f"{dotted_text(base)} is a parameter"
        values = self._own_values(scene, base)
        if (
            values
            and all(leaf(scene, one) for one in values)
            and not any(
                flow.is_false(flow.argument(one, 1, "requires_grad"))
                for one in values
                if isinstance(one, ast.Call)
            )
        ):
            return f"{dotted_text(base)} is a leaf that requires grad"
        return ""

    def _own_values(self, scene: Scene, base: ast.Name | ast.Attribute) -> list[ast.AST]:
        """What was assigned to it, as it was written: a move or a view gives something else than a leaf."""
        found: list[ast.AST] = []
        for one in scene.reaching(base):
            if one.how == "aug":
                continue
            if one.how != "assign" or one.path or one.value is None:
                return []
            found.append(one.value)
        return found

    def _of_parameters(self, one: Binding) -> bool:
        if one.how != "for" or not isinstance(one.value, ast.Call) or one.value.args:
            return False
        method = flow.method(one.value)
        return (method == "parameters" and not one.path) or (
            method == "named_parameters" and one.path == (1,)
        )

    def _frozen(self, scene: Scene, place: ast.AST) -> bool:
        root = flow.named_function(place) or scene.tree
        return any(
            isinstance(node, ast.Attribute) and node.attr in ("requires_grad", "requires_grad_")
            for node in flow.walk(root)
        ) or any(flow.method(one.call) == "_no_grad" for one in scene.steps(root)[:200])
