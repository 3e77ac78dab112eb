"""The command line: understudy simulate | fit | predict | report | rank | play | replay | studio | reproduce | demo | doctor.

Each command takes ``--seed``, ``--out``, ``--no-progress`` and ``--json``, where they mean something. Bad input ends with exit code 2 and one
sentence on stderr; Ctrl-C with 130. Libraries are loaded by the command that needs them, so that help is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from understudy import __version__
from understudy.cli.commands import predict, report, simulate
from understudy.cli.demo import demo
from understudy.cli.doctor import doctor
from understudy.cli.fit import fit
from understudy.cli.play import play
from understudy.cli.rank import rank
from understudy.cli.replay import replay
from understudy.cli.reproduce import reproduce
from understudy.cli.shell import Doors
from understudy.cli.studio import studio

app = typer.Typer(
    cls=Doors,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def first(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Watch a controller decide, learn what it values with honest uncertainty, predict it, and stand in for it.

    Example: `understudy demo`

    From a table of your own: `understudy fit decisions.csv --out posterior.nc`, then `understudy report posterior.nc --out report.html`

    A table to try it with: `understudy simulate --out decisions.csv`
    """
    if version:
        print(f"understudy {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (simulate, fit, predict, report, rank, play, replay, studio, reproduce, demo, doctor):
    app.command()(command)


def main() -> None:
    """Run the command that was typed."""
    app(prog_name="understudy")
