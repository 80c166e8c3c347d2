"""Commands whose help is not looked up in translations, which costs every start a millisecond."""

from __future__ import annotations

import click

# what "is not a valid …" says of them
click.IntRange.name = "whole number"
click.FloatRange.name = "number"


class PlainHelp(click.Command):
    """A command with click's help option, in English."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        names = self.get_help_option_names(ctx)
        if not names or not self.add_help_option:
            return None
        return click.Option(
            sorted(names, key=len),
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show,
            help="Show this message and exit.",
        )


def _show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
