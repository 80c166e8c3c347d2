"""The commands of the command line, as click has them."""

from __future__ import annotations

from collections.abc import Iterator

import click


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of each command below a group, its groups and their commands included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
