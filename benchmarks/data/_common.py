"""What the preparation scripts share: the command line, the digest, the comparison and the written file."""

import argparse
import importlib
import re
from pathlib import Path

import numpy as np

from consilience.datasets import _sets
from consilience.datasets._fetch import DataSet
from consilience.datasets._store import array_digest
from consilience.io.writing import write_atomically

# files of the benchmarks that no fetch_* function reads
OTHER_DIGESTS = {
    "libsvm_w8a.npz": "616657341c7ded842dc5e53c113dd30acca51b7047e70ba289200a43354142ee",
    "uci_skin_nonskin.npz": "7ee9cde90e64e7d90ae86fde5a8df273956247c6f26cb02d7274119fe88e5ca2",
    "news20_bydate_unigram_counts.npz": "4f7f88a2da847c05f2deb60a85d19977d1cfb79cc1c9084fd65c734b32f88726",
    "news20_bydate_binary_1_2gram.npz": "43c00ba6fa64e6b639de6e74809d3d64924ab5001d6f61ac36fc1d168ed3dc27",
}


def known_digest(file):
    """Return the digest that ``consilience.datasets`` or a benchmark expects of a file."""
    sets = [value for value in vars(_sets).values() if isinstance(value, DataSet)]
    return {source.file: source.digest for data in sets for source in data.sources}.get(file) or OTHER_DIGESTS[file]


def load_package(module, package):
    """Return a module, or stop with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SystemExit(f"This script needs the module {module}. Install it with: pip install {package}") from None


def find_files(folder, pattern):
    """Return (match, path) for each file below a folder whose path inside it matches a pattern, in sorted order."""
    folder = Path(folder)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    found = [(re.search(pattern, path.relative_to(folder).as_posix()), path) for path in paths]
    found = [(match, path) for match, path in found if match]
    if not found:
        raise SystemExit(f"{folder} has no file whose path matches {pattern}. See the docstring for the layout.")
    return found


def run(doc, build, sources, checks=None, arguments=None):
    """Build files from folders named on the command line, write them, and return the exit status.

    `build` returns {file name: arrays}. The status is 0 if each file has the known digest. With `checks`, the digest
    may differ, and each of the (sentence, bool) that `checks` returns for a file and its arrays must hold instead.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, meaning in sources.items():
        parser.add_argument(name, type=Path, help=meaning)
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the written files (default: this one)")
    parser.add_argument("--compare", type=Path, help="folder with known files, to compare array by array")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    good = True
    for file, arrays in build(*(getattr(options, name) for name in sources)).items():
        write_atomically(options.out / file, lambda opened, arrays=arrays: np.savez_compressed(opened, **arrays))
        good &= report(file, arrays, checks)
        if options.compare:
            compare(arrays, options.compare / file)
    return 0 if good else 1


def report(file, arrays, checks=None):
    """Print the digest and the checks of the arrays of a file; return whether they are good."""
    digest = array_digest(arrays)
    equal = digest == known_digest(file)
    print(f"{file}: digest {digest}, {'equal to' if equal else 'different from'} the known one")
    if equal or checks is None:
        return equal
    results = checks(file, arrays)
    for sentence, holds in results:
        print(f"  {'holds' if holds else 'FAILS'}: {sentence}")
    return all(holds for _, holds in results)


def compare(arrays, path):
    """Print how close each array is to that of a known file."""
    with np.load(path, allow_pickle=False) as known:
        for name in sorted(set(arrays) ^ set(known.files)):
            print(f"  {name}: only in {'the new file' if name in arrays else path}")
        for name in sorted(set(arrays) & set(known.files)):
            print(f"  {name}: {closeness(arrays[name], known[name])}")


def closeness(new, known):
    """Return in words how close two arrays are."""
    if new.shape != known.shape or new.dtype != known.dtype:
        return f"{new.dtype} {new.shape} instead of {known.dtype} {known.shape}"
    if np.array_equal(new, known):
        return "equal"
    if new.dtype.kind not in "iuf":
        return f"{np.mean(new != known):.1%} of the entries differ"
    text = f"largest difference {np.abs(new.astype(float) - known.astype(float)).max():.3g}"
    return text if new.ndim < 2 else f"{text}, correlation of similarities {agreement(new, known):.3f}"


def agreement(new, known, n=500):
    """Return the correlation of the similarities of row pairs, which does not depend on the order of columns."""
    rows = np.linspace(0, len(new) - 1, min(n, len(new))).astype(int)
    pairs = np.triu_indices(len(rows), 1)
    tables = [np.asarray(table)[rows].reshape(len(rows), -1).astype(float) for table in (new, known)]
    tables = [table - table.mean(axis=1, keepdims=True) for table in tables]
    units = [table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12) for table in tables]
    return float(np.corrcoef([(unit @ unit.T)[pairs] for unit in units])[0, 1])
