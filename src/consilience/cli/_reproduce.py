"""The command `reproduce`: published experiments run again."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from . import _options as option
from ._app import Stopped, app
from ._data import check_outputs
from ._output import say, show

ExperimentNames = Annotated[list[str] | None, Argument(help="Names of experiments, or 'all'.", show_default=False)]
ListFlag = Annotated[bool, Option("--list", help="List the experiments.")]
QuickFlag = Annotated[bool, Option("--quick", help="Run a small part of each experiment, in seconds.")]
Seeds = Annotated[int | None, Option("--seeds", min=1, help="Number of draws. Default: that of the full experiment.")]
Folder = Annotated[Path, Option("--folder", help="Folder of the results; a run that was stopped continues there.")]
PageFile = Annotated[Path | None, Option("--page", help="Write a page of all full results in the folder to this file.")]


@app.command()
def reproduce(
    names: ExperimentNames = None,
    listed: ListFlag = False,
    quick: QuickFlag = False,
    seeds: Seeds = None,
    folder: Folder = Path("build/reproduce"),
    page: PageFile = None,
    jobs: option.NumberOfJobs = 1,
    json_out: option.JsonFlag = False,
) -> None:
    """Run published experiments again, and print published values next to measured ones.

    Each measurement is kept in the folder when it is done: the same command continues after Ctrl-C. Two runs with the
    same seeds write the same JSON; times are in a file of their own.

    \b
    Examples:
      consilience reproduce --list
      consilience reproduce adult-linear --quick
      consilience reproduce all --jobs 2 --page reproduction.md
    """
    from ..experiments import all_experiments

    known = all_experiments()
    if listed or not (names or page):
        _list(known, json_out)
        return
    check_outputs(page)
    chosen = _chosen(names or [], known)
    failed = {}
    records = []
    for name in chosen:
        try:
            records.append(_run(known[name], folder, quick, seeds, jobs, json_out))
        except Exception as error:  # the others may still be run
            if len(chosen) == 1:
                raise
            failed[name] = str(error)
            say(f"{name} is left out: {error}", err=True)
    if page is not None:
        _write_page(known, folder, page)
    if json_out:
        show(records[0] if len(chosen) == 1 else {"experiments": records, "left_out": failed}, True, [], [])
    if failed:
        raise ValueError(f"{len(failed)} of {len(chosen)} experiments could not be run: {', '.join(failed)}.")


def _chosen(names: list[str], known: dict[str, Any]) -> list[str]:
    if "all" in names:
        return list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"There is no experiment {unknown[0]!r}. `consilience reproduce --list` shows their names.")
    return list(dict.fromkeys(names))


def _list(known: dict[str, Any], json_out: bool) -> None:
    rows = [
        {
            "name": each.name, "paper": each.paper, "shown in": each.shown_in, "data": each.data,
            "draws": each.seeds, "minutes": each.minutes, "title": each.title,
        }
        for each in known.values()
    ]  # fmt: skip
    show({"experiments": rows}, json_out, ["name", "paper", "shown in", "minutes", "title"], rows)


def _run(experiment: Any, folder: Path, quick: bool, seeds: int | None, jobs: int, json_out: bool) -> dict[str, Any]:
    from ..experiments._page import summary
    from ..experiments._run import file_stem, read_results, run

    try:
        record = run(experiment, folder, quick=quick, seeds=seeds, n_jobs=jobs, verbose=True)
    except KeyboardInterrupt as stopped:
        raise Stopped(f"Stopped. The same command continues {experiment.name}.") from stopped
    if not json_out:
        say(f"{experiment.title} ({experiment.paper}, {experiment.shown_in})\n")
        say(summary(experiment, *read_results(folder, file_stem(experiment, quick, seeds))))
    return record


def _write_page(known: dict[str, Any], folder: Path, file: Path) -> None:
    from ..experiments._page import page
    from ..io.writing import write_atomically

    text = page(known.values(), folder)
    write_atomically(file, lambda out: out.write(text.encode()))
    say(f"The page is in '{file}'.", err=True)
