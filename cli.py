"""The command line. Commands import inside: `gristmill --help` loads nothing of the mill itself.

stdout is data, stderr is talk. Exit codes: 0 all well; 1 more damage than declared, or `verify`
found something; 2 wrong use; 3 the run cannot go on; 130 interrupted.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .cli_quality import add_commands as add_quality


class Commands(TyperGroup):
    """Turns the errors of the mill into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from .documents.errors import GristmillError

        try:
            return super().invoke(ctx)
        except GristmillError as error:
            typer.echo(f"gristmill: {error}", err=True)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:  # the reader of a pipe went away; Typer ends quietly
            raise
        except OSError as error:  # a full disk, a folder that may not be written
            typer.echo(f"gristmill: {error}", err=True)
            raise typer.Exit(3) from None
        except KeyboardInterrupt:
            typer.echo("gristmill: interrupted; the same command goes on from here", err=True)
            raise typer.Exit(130) from None


_PLAIN: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,  # plain help: half the time, and the same on every terminal
    "pretty_exceptions_enable": False,
}
app = typer.Typer(
    cls=Commands, help="Raw web shards in; an accounted training mixture out.", **_PLAIN
)
mix = typer.Typer(help="Compile training plans and look at them.", **_PLAIN)
app.add_typer(mix, name="mix")
dedup = typer.Typer(help="Near duplicates: settings, and an index of crawls.", **_PLAIN)
app.add_typer(dedup, name="dedup")
quality = typer.Typer(help="Make and judge classifiers of quality.", **_PLAIN)
app.add_typer(quality, name="quality")
add_quality(quality)


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


class ExecutorName(StrEnum):
    """Who does the work."""

    local = "local"
    slurm = "slurm"
    ray = "ray"


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
PlanFolder = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan folder, or a run folder.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHARD", help="Go on without a shard; its loss is booked. May be repeated."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="An option of the executor. May be repeated."),
]
ListFile = Annotated[Path | None, typer.Option(metavar="FILE", help="One a line.")]
IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Sums by columns of the flow: pass, stage, source, dump, language, account, reason.",
    ),
]
Sql = Annotated[str | None, typer.Option(metavar="QUERY", help="Any query of the ledger.")]
To = Annotated[Path | None, typer.Option(metavar="FILE", help="Write there, not to stdout.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Tasks at a time; default: all CPUs.")]


@app.callback(invoke_without_command=True)
def face(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from . import __version__

        typer.echo(f"gristmill {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    workers: Workers = None,
) -> None:
    """Run the whole mill on the sample data that ships with it; a report at the end."""
    from .pipelines.demo import run_demo

    funnel, outcome, farewell = run_demo(out, workers, say=_say)
    typer.echo(funnel)
    _say(farewell)
    raise typer.Exit(_damage(outcome.damage))


@app.command()
def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (YAML).")],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder, new or to resume.")],
    root: Annotated[Path | None, typer.Option(help="Where the recipe's paths start.")] = None,
    executor: Annotated[ExecutorName, typer.Option(help="Who does the work.")] = ExecutorName.local,
    workers: Workers = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the run first.")] = False,
    without: Without = None,
    option: Options = None,
) -> None:
    """Make everything that a recipe asks for and that is not there yet."""
    from .pipelines.demo import run_with, summary
    from .pipelines.display import options

    asked = {"root": root, "fresh": fresh, "without": without or []}
    given = options(option or [])
    outcome = run_with(recipe, out, executor.value, workers, given, say=_say, **asked)
    _say(summary(out))
    raise typer.Exit(_damage(outcome.damage))


@app.command()
def status(run_folder: RunFolder, json: Json = False) -> None:
    """Show what is done, what is left, and how fast it went."""
    from .pipelines.display import to_json
    from .pipelines.run import open_run
    from .pipelines.status import render, status

    found = status(open_run(run_folder))
    typer.echo(to_json(found) if json else render(found))


@app.command()
def ledger(
    run_folder: RunFolder,
    by: By = None,
    sql: Sql = None,
    form: Annotated[Format, typer.Option("--format", help="How rows are printed.")] = Format.table,
    to: To = None,
) -> None:
    """Ask the accounts: the funnel, sums by columns, or SQL."""
    from .pipelines.display import ask_ledger, emit

    emit(ask_ledger(run_folder, by=by, sql=sql), form.value, to)


@app.command()
def why(
    run_folder: RunFolder,
    doc: Annotated[str, typer.Argument(metavar="DOC", help="A document's id or URL.")],
    json: Json = False,
) -> None:
    """Follow one document: raw record, every decision with its evidence, tokens, steps."""
    from .pipelines import why as whys
    from .pipelines.display import outline, to_json
    from .pipelines.run import open_run

    found = whys.why(open_run(run_folder), doc)
    typer.echo(to_json(found) if json else outline(found))


@app.command()
def sample(
    run_folder: RunFolder,
    stage: Annotated[
        str | None, typer.Option(help="Of the documents that it dropped, cut or flagged.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Of those dropped or cut for this reason.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many documents.")] = 5,
    seed: Annotated[int, typer.Option(help="Another seed, another sample.")] = 0,
    json: Json = False,
) -> None:
    """Read some documents that a stage dropped, or of those that are left."""
    from .pipelines import sample as samples
    from .pipelines.display import outline, to_json
    from .pipelines.run import open_run

    opened = open_run(run_folder)
    found = samples.sample(opened, stage=stage, reason=reason, n=n, seed=seed)
    if not found:
        _say(samples.nothing(opened, stage, reason))
    if found or json:
        typer.echo(to_json(found) if json else outline(found))


@app.command()
def verify(run_folder: RunFolder, json: Json = False) -> None:
    """Hash every file again, count every account a second time; exit 1 when something is off."""
    from .pipelines.display import progress, to_json
    from .pipelines.verify import notes, verify_folder

    with progress() as say:
        problems = verify_folder(run_folder, say)
    for note in notes(run_folder):
        _say(note)
    if json:
        typer.echo(to_json([p._asdict() for p in problems]))
    else:
        typer.echo("\n".join(map(str, problems)) or "every file, chain and balance is as it says")
    raise typer.Exit(1 if problems else 0)


@app.command()
def report(run_folder: RunFolder) -> None:
    """Write the report of a complete run anew and print where it stands."""
    from .pipelines.books import REPORT, build_ledger
    from .pipelines.run import open_run

    build_ledger(open_run(run_folder))
    typer.echo(run_folder / REPORT)


@app.command()
def budget(
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="A plan folder, or a run folder.")
    ] = None,
    active_params: Annotated[
        str | None, typer.Option(metavar="N", help="Parameters that a token meets: 40e9.")
    ] = None,
    tokens: Annotated[
        list[str] | None,
        typer.Option(metavar="D[@LENGTH]", help="Without a plan: 28.5T, 1T@32Ki. A stage each."),
    ] = None,
    accelerator: Annotated[str | None, typer.Option(help="Peak and power by its name.")] = None,
    grid: Annotated[str | None, typer.Option(help="Carbon of a country's grid: FRA.")] = None,
    constants: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Constants with their sources (YAML).")
    ] = None,
    stated: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="mfu=0.35..0.45, ...")
    ] = None,
    json: Json = False,
) -> None:
    """Reckon compute, hours, energy, carbon and cost; what nobody states is unknown."""
    from .mixing.budget import read_constants
    from .pipelines.budget import budget_of, render, to_dict
    from .pipelines.display import to_json

    pairs = [*(stated or []), *([f"active_params={active_params}"] if active_params else [])]
    known = read_constants(pairs, file=constants, accelerator=accelerator, grid=grid)
    found = budget_of(plan, tokens or [], known)
    typer.echo(to_json(to_dict(found)) if json else render(found))


@app.command()
def export(
    plan: PlanFolder,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="megatron, ds, npy, mds or parquet.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    stage: Annotated[
        list[str] | None, typer.Option(help="Only this stage. May be repeated.")
    ] = None,
) -> None:
    """Write a plan's sequences, in its order, in another trainer's format."""
    from .mixing import TokenFeed
    from .mixing.export import export as write
    from .pipelines.display import run_and_plan
    from .pipelines.trace import plan_folder

    run, name = run_and_plan(plan)
    feed = TokenFeed(plan_folder(run, name), run.store.path("tokens"))
    write(feed, to, out, stages=stage)
    typer.echo(out)


@app.command()
def doctor() -> None:
    """Check this machine: versions, caches, the tokenizer, free disk."""
    from .pipelines.doctor import examine

    good, lines = examine()
    typer.echo(lines)
    raise typer.Exit(0 if good else 3)


@mix.command("plan")
def plan_(
    run_folder: RunFolder,
    mixture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A mixture, or a recipe with one.")
    ] = None,
    json: Json = False,
) -> None:
    """Compile a further plan over the tokens of a run, by another mixture."""
    from .pipelines import mix as plans
    from .pipelines.display import outline, to_json
    from .pipelines.run import open_run

    found = plans.further_plan(open_run(run_folder), mixture)
    typer.echo(to_json(found) if json else outline(found))


@mix.command()
def account(
    plan: PlanFolder,
    position: Annotated[
        int | None, typer.Option(min=0, help="What was served before it, beside the plan.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMNS",
            help="Of source, dump, language, license, page_format, quality_bucket, length_bucket.",
        ),
    ] = "source",
    record: Annotated[
        bool, typer.Option("--record", help="Book the position as served in the run's ledger.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How rows are printed.")] = Format.table,
    to: To = None,
) -> None:
    """Count every token that a plan reads, and what a trainer has been served of it."""
    from .pipelines import mix as plans
    from .pipelines.display import emit, run_and_plan

    columns = [name.strip() for name in by.split(",") if name.strip()]
    emit(plans.account_of(*run_and_plan(plan), columns, position, keep=record), form.value, to)


@mix.command()
def show(plan: PlanFolder, json: Json = False) -> None:
    """Show a plan: its stages, slices and accounts."""
    from .pipelines import trace as traces
    from .pipelines.display import outline, run_and_plan, to_json

    found = traces.show(*run_and_plan(plan))
    typer.echo(to_json(found) if json else outline(found))


@mix.command()
def trace(
    plan: PlanFolder,
    step: Annotated[int, typer.Option(min=0, help="The optimizer step.")],
    json: Json = False,
) -> None:
    """Name the documents that a training step reads."""
    from .pipelines import trace as traces
    from .pipelines.display import records, run_and_plan, to_json

    found = traces.trace(*run_and_plan(plan), step)
    typer.echo(to_json(found) if json else records(found))


NEAR = """\
With --near proven also what decisions on exact and near duplicates join to them, from document to
document over all stages until nothing is added; with cluster also whole clusters, likewise. With
none only what the lists name: what they stood for enters in their place, verbatim copies too. URLs
join nothing: another text of a URL may enter where one goes by its id. Whatever enters is in the
report, `entered`: its id, the stage that had removed it, the document it had been removed for, and
whether the two texts are equal."""


@app.command(epilog=NEAR)
def remove(
    run_folder: RunFolder,
    ids: ListFile = None,
    urls: ListFile = None,
    hosts: ListFile = None,
    near: Annotated[str, typer.Option(help="Duplicates too: none, proven, cluster.")] = "proven",
    served: Annotated[int, typer.Option(min=0, help="Steps that the trainer has done.")] = 0,
    index: Annotated[Path | None, typer.Option(help="An index to take them out of.")] = None,
    workers: Workers = None,
) -> None:
    """Take documents out of all that a run holds of them; list the steps that saw them."""
    from .pipelines import remove as removal
    from .pipelines.executors import make_executor
    from .pipelines.run import open_run

    wanted = removal.read_lists(ids, urls, hosts)
    pool = make_executor("local", workers)
    asked = removal.Asked(near=near, served=served, index=index)
    found = removal.remove(open_run(run_folder), wanted, asked, executor=pool, say=_say)
    typer.echo(removal.told(found))


@dedup.command()
def index(
    index_folder: IndexFolder,
    run_folder: RunFolder,
) -> None:
    """Add a run to an index of crawls, in place of what it gave before; print what changed."""
    from .pipelines.display import to_json
    from .pipelines.indexing import add_run
    from .pipelines.run import open_run

    typer.echo(to_json(add_run(index_folder, open_run(run_folder))))


@dedup.command()
def query(
    index_folder: IndexFolder,
    text: Annotated[str | None, typer.Option(help="A file with one text, or - for stdin.")] = None,
    run: Annotated[Path | None, typer.Option(metavar="RUN", help="All texts of a run.")] = None,
) -> None:
    """Print what a text, or the documents of a run, duplicate in an index: JSON lines."""
    from .pipelines.display import to_line
    from .pipelines.indexing import ask

    for row in ask(index_folder, text, run):
        typer.echo(to_line(row))


@dedup.command("verify")
def verify_index(index_folder: IndexFolder) -> None:
    """Hash every file of an index again; exit 1 when something is off."""
    from .pipelines.indexing import index_problems

    problems = index_problems(index_folder)
    typer.echo("\n".join(problems) or "every file is as the index says")
    raise typer.Exit(1 if problems else 0)


@dedup.command()
def curve(
    bands: Annotated[int, typer.Option(min=1, help="Bands of the sketch.")] = 32,
    rows: Annotated[int, typer.Option(min=1, help="Lanes in a band.")] = 8,
    threshold: Annotated[float, typer.Option(min=0.01, max=1, help="Jaccard.")] = 0.8,
    scheme: Annotated[str, typer.Option(help="fss or datasketch.")] = "fss",
) -> None:
    """Print what share of pairs a setting compares, by similarity, and what it costs."""
    from .dedup.curve import render

    typer.echo(render(bands, rows, threshold, scheme=scheme))


@mix.command()
def amend(
    plan: PlanFolder,
    position: Annotated[int, typer.Option("--from", min=0, help="First position not trained on.")],
    skip: Annotated[
        list[str] | None, typer.Option(metavar="LOW..HIGH", help="Positions to pass over.")
    ] = None,
    remove: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of documents to leave out, one a line.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a plan that skips positions or leaves documents out; earlier positions stay."""
    from .pipelines import trace as traces
    from .pipelines.display import outline, run_and_plan, to_json

    found = traces.amend(*run_and_plan(plan), position, skip or [], remove)
    typer.echo(to_json(found) if json else outline(found))


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _damage(lines: list[str]) -> int:
    """Say what was damaged beyond the recipe's limits; the exit code."""
    for line in lines:
        _say(f"gristmill: {line}")
    return 1 if lines else 0


def main() -> None:
    """Entry point of `gristmill` and `python -m gristmill`."""
    sys.exit(app(prog_name="gristmill"))
