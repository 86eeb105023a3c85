"""Groups of commands: imported only when they run, so that help is instant; typos get a suggestion."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from perdure.errors import BadOption


class SuggestingGroup(click.Group):
    """A group that answers no command with its help, and a mistyped one with the one that was meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from perdure.text.suggestion import suggestion  # here, so that help does not wait for it

            near = suggestion(name, self.list_commands(ctx), cutoff=0.5)
            hint = f"Did you mean '{ctx.command_path} {near}'?" if near else f"Try '{ctx.command_path} --help'."
            raise BadOption(f"There is no command '{ctx.command_path} {name}'.", hint)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group whose commands are named by import path, with the line that help shows for each."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The stored lines are shown: asking the commands would import them all.
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])
