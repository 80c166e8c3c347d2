"""``torchdoctor completion``: the completion script of a shell; and the ids of rules, completed."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from torchdoctor.cli import streams

_VARIABLE = "_TORCHDOCTOR_COMPLETE"  # what the scripts set and torchdoctor.cli.main looks at


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script of a SHELL. It completes commands, options and ids of rules.

    \b
    ~/.bashrc: eval "$(torchdoctor completion bash)"
    ~/.zshrc:  eval "$(torchdoctor completion zsh)"
    fish: torchdoctor completion fish \\
            > ~/.config/fish/completions/torchdoctor.fish

    Exit codes: 0 done, 2 a usage error.
    """
    from torchdoctor.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    streams.write(kind(cli, {}, "torchdoctor", _VARIABLE).source())
    return 0


def rule_ids(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The ids of rules and pitfalls that begin so, with their titles."""
    from torchdoctor import catalog
    from torchdoctor.catalog.page import summary
    from torchdoctor.lint import page

    known = [*(summary(rule) for rule in catalog.load_with_packs()[0].rules()), *page.summaries()]
    return [CompletionItem(one["id"], help=one["title"]) for one in known if one["id"].startswith(begun)]
