"""The command line: revealed simulate | fit | predict | report | rank | play | replay | ...

Each command takes ``--seed``, ``--out``, ``--no-progress`` and ``--json``, where they mean
something. Bad input ends with exit code 2 and one sentence on stderr; Ctrl-C with 130. Libraries
are loaded by the command that needs them, so that help is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from revealed import __version__
from revealed.cli._shared import CommandGroup
from revealed.cli.demo import demo
from revealed.cli.doctor import doctor
from revealed.cli.fit import fit
from revealed.cli.play import play
from revealed.cli.predict import predict
from revealed.cli.rank import rank
from revealed.cli.replay import replay
from revealed.cli.report import report
from revealed.cli.reproduce import reproduce
from revealed.cli.simulate import simulate
from revealed.cli.studio import studio

# Errors become sentences in `CommandGroup`; -h is short for --help everywhere.
app = typer.Typer(
    cls=CommandGroup,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def show_version_or_help(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.")
    ] = False,
) -> None:
    """Watch a controller decide, infer what it values, predict it, and stand in for it.

    Example: `revealed demo`

    From a table of your own: `revealed fit decisions.csv --out posterior.nc`, then
    `revealed report posterior.nc --out report.html`

    A table to try it with: `revealed simulate --out decisions.csv`
    """
    # the version needs no command
    if version:
        print(f"revealed {__version__}")
        raise typer.Exit()
    # `revealed` alone shows what there is
    if context.invoked_subcommand is None:
        print(context.get_help())


# In this order they are listed by `revealed --help`.
for command in (
    simulate,
    fit,
    predict,
    report,
    rank,
    play,
    replay,
    studio,
    reproduce,
    demo,
    doctor,
):
    app.command()(command)


def main() -> None:
    """Run the command that was typed."""
    app(prog_name="revealed")
