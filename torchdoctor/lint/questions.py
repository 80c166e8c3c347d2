"""What can be asked of a scene by those that it asks in turn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.lint.index import Binding, Class, FunctionNode, Index


class Questions(Protocol):
    """The part of ``scene.Scene`` that origins and kinds are worked out from; see there."""

    index: Index

    def name(self, node: ast.AST | None) -> str: ...

    def called(self, call: ast.AST | None) -> str: ...

    def lookup(self, node: ast.Name) -> list[Binding]: ...

    def reaching(self, node: ast.Name | ast.Attribute) -> list[Binding]: ...

    def attribute_binds(self, node: ast.Attribute) -> list[Binding]: ...

    def target(self, call: ast.Call) -> FunctionNode | None: ...

    def callers(self, function: ast.AST | None) -> list[ast.Call]: ...

    def local_class(self, node: ast.AST | None) -> Class | None: ...

    def bases(self, owner: Class) -> set[str]: ...

    def values(self, node: ast.AST | None) -> Sequence[ast.expr | Binding]: ...

    def kinds(self, node: ast.AST | None) -> frozenset[str]: ...
