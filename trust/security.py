"""Hostile strings, files and requests against the threat model of SECURITY.md: ``python trust/security.py [--long]``.

Files are read in children that are forked from this process, under hooks that see every program, import of a pickle,
connection and file that is opened to write.
"""

import os

if __name__ == "__main__":  # children are forked: no threads of BLAS
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import csv
import io
import random
import re
import sys
import tempfile
import time
import warnings
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pandas as pd

import _guards
import _hostile
import _requests
import consilience as cs
from check import Check, Figure, Found, main
from consilience.datasets import _store
from consilience.io.writing import csv_lines
from fuzzing.commands import call, working_in
from fuzzing.properties import check_sentence, explain

MEGABYTES = 24  # of memory that a child may use for bombs
GROWTH = 6 * MEGABYTES  # lines and cells of text take several times their bytes


class Tally:
    """Cases of one kind that were tried, and those that failed."""

    def __init__(self, what):
        self.what, self.tried, self.failed = what, 0, 0

    def add(self, wrong, about=""):
        """Count a case; print what is wrong."""
        self.tried += 1
        if wrong:
            self.failed += 1
            print(f"{self.what}: {about!r:.300}: {wrong}", file=sys.stderr)

    def figure(self, note=""):
        """Return the line of the record."""
        return Figure(self.what, self.tried, self.failed, note)


# -- markup
class Elements(HTMLParser):
    """The elements of a page with their attributes, its script, and where its links go."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.links, self.scripts, self.policy = set(), set(), set(), [], ""
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Keep an element."""
        self.tags.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        given = dict(attrs)
        self.links |= {given[name] for name in ("href", "src", "action", "formaction", "data") if given.get(name)}
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        self._in_script = tag == "script"

    def handle_endtag(self, tag):
        """Leave a script."""
        self._in_script = False

    def handle_data(self, data):
        """Keep the text of scripts."""
        if self._in_script:
            self.scripts.append(re.sub(r"sk-container-id-\d+", "sk-container", data))  # scikit-learn numbers its own


def markup_of(text, plain):
    """Return what is wrong about a page compared with one of plain names, or None."""
    found = Elements(text)
    more = [*(found.tags - plain.tags), *(found.attributes - plain.attributes)]
    if more:
        return f"new elements or attributes: {more[:3]}"
    if found.scripts != plain.scripts:
        return "another script"
    if found.policy != plain.policy or any(word in found.policy for word in ("unsafe-inline", "*")):
        return f"another policy: {found.policy}"
    odd = [link for link in found.links - plain.links if not link.startswith("#")]
    return f"links to {odd[:2]}" if odd else None


def named(strings, n=3):
    """Return distinct names, as many as asked for: strings, with numbers where they repeat or are empty."""
    found = {}
    for k in range(n):
        text = strings[k % len(strings)]
        found[text if text and text not in found else f"{text}{k}"] = None
    return list(found)


SAMPLES = 36


def data_of(strings):
    """Return views, targets and a board of samples whose views, columns, names and classes are strings."""
    rng = np.random.default_rng(0)
    views, classes = named(strings, 2), named(strings[::-1], 2)
    y = np.array(classes, dtype=object)[np.arange(SAMPLES) % 2]
    blocks = {view: rng.normal(size=(SAMPLES, 3)) + (np.arange(SAMPLES) % 2)[:, None] for view in views}
    blocks[views[0]][::7] = np.nan
    names = [f"{strings[k % len(strings)]} {k}" for k in range(SAMPLES)]
    columns = named([*strings[1:], strings[0]], 3)
    return cs.Views({view: pd.DataFrame(own, names, columns) for view, own in blocks.items()}), y


def reports_of(strings, folder):
    """Return the text of the reports on a comparison, an external cohort and a stream."""
    from consilience.report import Provenance, StreamFindings, examine, examine_external, write_report

    X, y = data_of(strings)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = cs.compare(X, y, estimators=["EarlyFusion"], cv=2, n_jobs=1, baselines=False)
        model = cs.CoRegularizedRidgeClassifier().fit(X, y)
        online = cs.PassiveAggressive(prepare="impute")
        result = cs.progressive_validation(online, X, y, by_view=True)
        source = Provenance((Path(f"{strings[0].replace(chr(0), '')[:90].replace('/', '')}.csv"),), strings[0], None)
        for findings in (examine(X, y, board, title=strings[0], n_jobs=1),
                         examine_external(model, X, y, title=strings[0]),
                         StreamFindings(strings[0], "PassiveAggressive", result, None)):  # fmt: skip
            write_report(folder / "r.html", findings, title=strings[0], provenance=source)
            found.append((folder / "r.html").read_text(encoding="utf-8", errors="replace"))
    return [*found, X._repr_html_(), model._repr_html_(), online._repr_html_(), *shown_by_notebooks(board, result)]


def shown_by_notebooks(*values):
    """Return what notebooks show of values that have a manner of their own."""
    return [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]


@cache
def plain_pages():
    """Return the elements of the same pages with plain names."""
    with tempfile.TemporaryDirectory() as name:
        return [Elements(text) for text in reports_of(["one", "two", "three"], Path(name))]


def hostile_pages(long, rng):
    """Write reports and reprs with hostile names: nothing but text is there."""
    tally = Tally("hostile names in reports and notebooks: no new element, attribute, script or link")
    strings, plain_ones = [text for text in _hostile.STRINGS if "\ud800" not in text], plain_pages()
    sets = [rng.sample(strings, 4) for _ in range(40)] if long else [["</script><x-evil>", '" onevil="1', "<x-evil>"]]
    with tempfile.TemporaryDirectory() as name:
        for chosen in sets:
            try:
                pages = reports_of(chosen, Path(name))
            except ValueError as error:  # names that a container refuses
                tally.add(None if str(error).endswith(".") else explain(error), chosen)
                continue
            for page, plain in zip(pages, plain_ones, strict=True):
                tally.add(markup_of(page, plain), chosen)
    return tally.figure()


def hostile_views(long, rng):
    """Show views and kernels with hostile names as notebooks do."""
    tally = Tally("hostile names in what notebooks show of views")
    plain = Elements(cs.Views(a=np.ones((2, 2)))._repr_html_())
    for _ in range(3000 if long else 100):
        names = named(["".join(rng.sample(_hostile.STRINGS, rng.randrange(1, 4))) for _ in range(2)], 2)
        page = cs.Views({name: np.ones((2, 2)) for name in names})._repr_html_()
        tally.add(markup_of(page, plain), names)
    return tally.figure()


# -- spreadsheets
def hostile_cells(long, rng):
    """Write hostile cells as CSV: each is in its place, as it was."""
    tally = Tally("hostile cells in CSV: each in its place, as it was")
    for _ in range(20_000 if long else 500):
        rows = [["".join(rng.choices(_hostile.STRINGS, k=rng.randrange(1, 3))) for _ in range(3)] for _ in range(2)]
        rows = [[cell.replace("\ud800", "").replace("\0", "") for cell in row] for row in rows]
        tally.add(wrong_cells(csv_lines(rows), rows), rows)
    return tally.figure()


def wrong_cells(text, rows):
    """Return what is wrong about CSV that was written from rows, or None."""
    found = list(csv.reader(io.StringIO(text, newline="")))
    if len(found) != len(rows) or any(len(row) != len(own) for row, own in zip(found, rows, strict=True)):
        return "another number of cells"
    for row, own in zip(found, rows, strict=True):
        for cell, given in zip(row, own, strict=True):
            if cell != given:
                return f"{cell!r} for {given!r}"
    return None


# -- commands
COMMANDS = (
    ["fit", "DATA", "-y", "TARGET", "-e", "CoRegularizedRidgeClassifier", "--save", "m.cons"],
    ["fit", "DATA", "-y", "TARGET", "-e", "CoRegularizedRidgeClassifier", "--save", "m.cons", "--json"],
    ["predict", "m.cons", "DATA", "--id", "ID"], ["predict", "m.cons", "DATA", "--id", "ID", "--out", "out.csv"],
    ["predict", "m.cons", "DATA", "--json"], ["evaluate", "m.cons", "DATA", "-y", "TARGET"], ["inspect", "m.cons"],
    ["stream", "DATA", "-y", "TARGET", "--id", "ID", "--by-view", "--predictions", "p.csv"],
    ["compare", "DATA", "-y", "TARGET", "--id", "ID", "-e", "EarlyFusion", "-j", "1", "--cv", "2",
     "--csv", "board.csv"],
    ["fit", "DATA", "-y", "STRING", "--save", "m.cons"],
    ["fit", "DATA", "-y", "TARGET", "--set", "STRING", "--save", "x"],
    ["fit", "DATA", "-y", "TARGET", "-e", "STRING", "--save", "x"], ["predict", "STRING", "DATA"], ["inspect", "DATA"],
    ["predict", "m.cons", "STRING"], ["STRING"], ["fit", "--STRING"],
    ["fit", "DATA", "-y", "TARGET", "--save", "STRING/x"],
    ["stream", "DATA", "-y", "STRING"], ["stream", "DATA", "-y", "TARGET", "--views", "STRING"],
    ["reproduce", "STRING"],
    ["compare", "DATA", "-y", "TARGET", "--scoring", "STRING"], ["fit", "DATA", "-y", "TARGET", "--prepare", "STRING"],
)  # fmt: skip


def write_table(path, strings):
    """Write a CSV file whose columns, classes and names are strings."""
    columns, classes = named(strings, 3), named(strings[::-1], 2)
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "ID", "TARGET"])
        for k in range(12):
            values = [f"{np.sin(7 * k + j) + k % 2:.3f}" for j in range(len(columns))]
            writer.writerow([*values, f"{strings[k % len(strings)]}{k}", classes[k % 2]])


def hostile_commands(long, rng):
    """Run commands on files with hostile names: no control sequences, no traceback."""
    tally = Tally("commands with hostile names, values and words: no control sequences or new files")
    with tempfile.TemporaryDirectory() as name:
        for _ in range(60 if long else 1):
            strings = [text.replace("\0", "") for text in rng.sample(_hostile.STRINGS, 4)]
            folder = Path(tempfile.mkdtemp(dir=name))
            stem = "".join(sign for sign in strings[0] if sign not in "/\ud800")[:60]
            data = f"{stem}t.csv"
            write_table(folder / data, strings)
            with working_in(folder):
                for words in COMMANDS:
                    places = {"DATA": f"./{data}", "STRING": strings[1].replace("\ud800", "")}
                    own = [next((w.replace(k, v) for k, v in places.items() if k in w), w) for w in words]
                    tally.add(wrong_command(own), own)
            wrong = wrong_tables(folder)
            known = {"m.cons", "out.csv", "p.csv", "board.csv", data, "x"}
            wrong = wrong or next(
                (f"a file {path.name!r}" for path in folder.iterdir() if path.name not in known), None
            )
            tally.add(wrong or (f"files outside: {os.listdir(name)}" if len(os.listdir(name)) > 100 else None), strings)
    return tally.figure()


def wrong_command(words):
    """Run a command; return what is wrong about what it prints, or None."""
    os.environ.pop("CONSILIENCE_DEBUG", None)
    with warnings.catch_warnings():
        try:
            done = call(words)
        except Exception as error:
            return explain(error)
    if done.code not in (0, 1, 2):
        return f"exit code {done.code}: {done.errors[-300:]}"
    if "Traceback (most" in done.errors:
        return f"a traceback: {done.errors[-300:]}"
    sign = _hostile.changes_a_terminal(done.output + done.errors)
    return f"{sign} is printed: {(done.output + done.errors)[-300:]!r}" if sign else None


def wrong_tables(folder):
    """Return what is wrong about the CSV files that commands wrote."""
    for name in ("out.csv", "p.csv", "board.csv"):
        if (folder / name).exists():
            with open(folder / name, newline="", encoding="utf-8", errors="replace") as file:
                rows = list(csv.reader(file))
            if len({len(row) for row in rows}) > 1:
                return f"{name} has rows of several lengths"
    return None


# -- files
def read_any(path):
    """Read a file in every manner that its name allows."""
    acts = [lambda: cs.load(path)] if path.suffix == ".cons" else [
        lambda: cs.read_samples(path, target="y"), lambda: list(cs.io.read_stream(path, target="y", chunk=16)),
    ]  # fmt: skip
    for act in acts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                act()
            except (ValueError, TypeError, OSError, MemoryError, EOFError, ImportError) as error:
                yield error
            else:
                yield None


def try_file(path):
    """Read a file in a child under guard; return what is wrong, or None."""

    def work():
        for error in read_any(path):
            if error is not None:
                check_sentence(error)

    status, events = _guards.guarded(work, path.parent)
    if events:
        return f"{events[0]}"
    return f"status {status}" if status else None


def hostile_files(long, rng):
    """Read data and model files that carry code: nothing runs, and nothing is written."""
    tally = Tally("data and model files that carry code: nothing runs, nothing is written")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "in" / "side"
        folder.mkdir(parents=True)
        canary = str(Path(name) / "canary")
        files = _hostile.files_with_code(canary)
        chosen = list(files) if long else [*list(files)[:24], *rng.sample(list(files), 12)]
        for file in chosen:
            (folder / file).write_bytes(files[file])
            wrong = try_file(folder / file)
            if Path(canary).exists() or [*Path(name).iterdir()] != [folder.parent]:
                wrong = "the code ran, or a file was written outside"
            tally.add(wrong, file)
            (folder / file).unlink()
    return tally.figure(f"{len(chosen)} files")


def try_bomb(path):
    """Read a bomb in a child with little memory; return what is wrong, or None."""

    def work():
        os.environ["CONSILIENCE_MEMORY"] = f"{MEGABYTES}MB"
        read = cs.load if path.suffix == ".cons" else partial(cs.read_samples, target="y")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(path)
        except (ValueError, MemoryError, OSError) as error:
            check_sentence(error)
            return
        if not path.name.startswith("laughs"):  # entities may be left as they are
            raise AssertionError("the file was not refused")

    status, growth = _guards.peak_growth(work)
    if status:
        return f"not refused in a sentence: status {status}, {growth:.0f} MB"
    return f"memory grew by {growth:.0f} MB" if growth > GROWTH else None


def import_readers(folder):
    """Read small files in this process, so that the memory of packages is not that of a bomb."""
    X, _ = data_of(["a", "b", "c"])
    cs.save(X, folder / "small.cons")
    cs.load(folder / "small.cons")
    (folder / "small.npz").write_bytes(_hostile.npz_bytes(a=np.ones((3, 2)), y=np.arange(3)))
    (folder / "small.csv").write_text("a,y\n1,0\n2,1\n")
    (folder / "small.xlsx").write_bytes(_hostile.workbook_with(b""))
    for name in ("small.npz", "small.csv", "small.xlsx"):
        cs.read_samples(folder / name, target="y")


def try_bombs(long, rng):
    """Read files that unpack to far more than the memory."""
    tally = Tally(f"packed files that unpack to more than {MEGABYTES} MB of memory: refused before it is used")
    bombs = _hostile.bombs(40 * MEGABYTES) if long else _hostile.few_bombs(10 * MEGABYTES)
    with tempfile.TemporaryDirectory() as name:
        import_readers(Path(name))
        for file in bombs:
            path = Path(name) / file
            path.write_bytes(bombs[file])
            tally.add(try_bomb(path), file)
            path.unlink()
    return tally.figure(f"memory grew by at most {GROWTH} MB")


# -- the network
def ordinary_work(folder):
    """Do what users do, without data of others."""
    X, y = data_of(["a", "b", "c"])
    model = cs.CoRegularizedRidgeClassifier().fit(X, y)
    cs.save(model, folder / "m.cons")
    cs.load(folder / "m.cons").predict(X)
    write_table(folder / "t.csv", ["a", "b", "c"])
    with working_in(folder):
        for words in (["--help"], ["fit", "t.csv", "-y", "TARGET", "--save", "n.cons"], ["estimators"], ["kernels"],
                      ["reproduce", "--list"], ["stream", "t.csv", "-y", "TARGET", "--id", "ID", "--report", "s.html"],
                      ["compare", "t.csv", "-y", "TARGET", "--id", "ID", "-e", "EarlyFusion", "-j", "1", "--cv", "2"],
                      *([command, "--help"] for command in ("fit", "predict", "evaluate", "stream", "compare", "demo",
                                                            "inspect", "reproduce"))):  # fmt: skip
            if call(words).code:
                raise RuntimeError(f"{words} failed")
    reports_of(["a", "b", "c"], folder)


def no_network(long):
    """Do ordinary work under guard, then fetch: the first connects to nothing, the second by https alone."""
    tally = Tally("ordinary work without a connection, and `fetch_*` with https alone")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if long:
            status, events = _guards.guarded(partial(ordinary_work, folder), folder, forbidden=_guards.FORBIDDEN)
            tally.add(events[0] if events else f"status {status}" if status else None, "ordinary work")
        status, events = _guards.guarded(partial(fetching, folder), folder, forbidden=_guards.NETWORK)
        told = [text for text in events if not text.startswith("open")]
        asked = [text for text in told if "urllib.Request" in text]
        wrong = None if asked and all("'https://" in text for text in asked) else f"asked for {told[:2]}"
        tally.add(f"status {status}" if status else wrong, "fetch_*")
    for wrong, about in wrong_downloads():
        tally.add(wrong, about)
    return tally.figure()


def fetching(folder):
    """Ask for data sets; every connection is refused by a hook."""

    def refuse(event, given):
        if event in ("socket.connect", "socket.getaddrinfo"):
            raise OSError("no network")

    sys.addaudithook(refuse)
    os.environ.pop("CONSILIENCE_DATA", None)
    from consilience import datasets

    for name in sorted(vars(datasets)["__all__"]):
        if name.startswith("fetch_"):
            try:
                getattr(datasets, name)(data_home=folder / "cache")
            except OSError:
                continue
            raise AssertionError(f"{name} needs no connection")


def wrong_downloads():
    """Yield what is wrong about addresses, redirects, sizes and digests of downloads."""
    source = _store.ArrayFile("x.npz", "0" * 64, "nowhere", ("https://x.example/a",), lambda content: {"a": np.ones(2)})
    for url in ("http://x.example/a", "ftp://x.example/a", "file:///etc/passwd", "data:,x", "HTTPS://x", "//x", ""):
        redirected = partial(_store._HttpsOnly().redirect_request, None, None, 302, "", {}, url)
        for what, ask in (("address", partial(_store._open, url)), ("redirect", redirected)):
            try:
                ask()
            except ValueError as error:
                yield None if "https" in str(error) else explain(error), (what, url)
            except Exception as error:
                yield explain(error), (what, url)
            else:
                yield "it is opened", (what, url)

    class Endless(io.RawIOBase):
        read_so_far = 0

        def read(self, n=-1):
            Endless.read_so_far += n
            return bytes(n) if n >= 0 else bytes(1 << 30)

    limit = 1 << 20
    with mock.patch.object(_store, "_open", return_value=Endless()), mock.patch.object(_store, "SIZE_LIMIT", limit):
        try:
            _store._download("https://x.example/a")
            yield "it is taken", "an endless download"
        except ValueError:
            yield None if Endless.read_so_far <= 2 * limit else f"{Endless.read_so_far} bytes", "an endless download"
    with tempfile.TemporaryDirectory() as name, mock.patch.object(_store, "_download", return_value=b"x"):
        try:
            _store.read_arrays(source, name)
            yield "they are taken", "arrays of another digest"
        except OSError:
            yield "they are kept" if os.listdir(name) else None, "arrays of another digest"


# -- all
def run(long):
    """Try all of it; in the long run thousands of cases."""
    rng = random.Random(0)
    begun = time.monotonic()
    figures = []
    for part in (hostile_pages, hostile_views, hostile_cells, hostile_commands, hostile_files, try_bombs):
        figures.append(part(long, rng))
        if long:
            print(f"{part.__name__}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    figures.append(no_network(long))
    tally = Tally("requests to the example service: bounded, refused, and it stays up")
    for wrong, about in _requests.hostile_requests(400 if long else 12, rng):
        tally.add(wrong, about)
    return Found([*figures, tally.figure()])


CHECK = Check(
    "security",
    "Hostile input",
    "Names from an attacker are text: in reports, notebooks, terminals and spreadsheets. No code in a data or model "
    "file runs, and no file outside of the given paths is written. Packed files that unpack to more than the memory "
    "are refused before they are unpacked. Only `fetch_*` connects to other machines, by https. The example service "
    "bounds its requests and stays up.",
    run,
    (
        "Pages are parsed by Python's parser, which is not that of a browser.",
        "What compiled code of other packages does is seen where it makes a call of the system, not inside.",
        "Published holes of other packages: `nox -s security` asks pip-audit, which needs a network.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
