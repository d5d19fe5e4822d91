"""Arrays of a data set from a folder of files, the cache or the public home, checked by a digest.

The digest is that of the arrays, not of the bytes of a file. So one check serves a given file, a cached file, and
arrays that were just parsed from the public home.
"""

import hashlib
import os
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..io.writing import write_atomically

Arrays = dict[str, np.ndarray]

FOLDER_VARIABLE = "CONSILIENCE_DATA"
TIMEOUT_SECONDS = 30.0
SIZE_LIMIT = 200 * 2**20


@dataclass(frozen=True)
class ArrayFile:
    """One file of arrays: its name, the digest of its arrays, and its public home.

    Parameters
    ----------
    file : str
        Name of the npz file.
    digest : str
        Result of `array_digest` for its arrays.
    origin : str
        Place of the original data, for the message if no file is found.
    homes : tuple of str
        Addresses (https) of all original files; empty if the arrays cannot be downloaded in this form.
    parse : callable or None
        Function of the bytes of each address that returns the arrays.
    script : str
        Name of the script in ``benchmarks/data`` that makes the file from the original data; empty if it has a home.
    form : str
        Result of `array_form`, if the script cannot repeat the arrays exactly. Others of this form are accepted then.
    """

    file: str
    digest: str
    origin: str
    homes: tuple[str, ...] = ()
    parse: Callable[..., Arrays] | None = None
    script: str = ""
    form: str = ""


def array_form(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a SHA-256 of name, kind of type and shape of each array, in the order of names."""
    parts = [f"{name} {arrays[name].dtype.newbyteorder('<').str} {arrays[name].shape}\n" for name in sorted(arrays)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def array_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of name, type, shape and little-endian bytes of each array, in the order of names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        # the digest is the same on machines of either byte order
        array = np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"))
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def read_arrays(source: ArrayFile, data_home: str | os.PathLike[str] | None) -> Arrays:
    """Return the arrays of a source from the first place that has them, after the check of their digest."""
    cached = _cache_folder(data_home) / source.file
    given = os.environ.get(FOLDER_VARIABLE)
    for path in ([Path(given) / source.file] if given else []) + [cached]:
        if path.is_file():
            return _read_checked(path, source)
    arrays = _from_home(source, given, cached)
    cached.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(cached, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]
    return arrays


def _cache_folder(data_home: str | os.PathLike[str] | None) -> Path:
    if data_home is not None:
        return Path(data_home).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "consilience"


def _read_checked(path: Path, source: ArrayFile) -> Arrays:
    remedy = f"Remove or replace it; original data: {source.origin}."
    try:
        with np.load(path, allow_pickle=False) as file:  # no code in a file runs
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # damaged files raise many kinds of errors
        raise OSError(f"{path} is not a readable npz file of plain arrays ({error}). {remedy}") from error
    return _checked(arrays, source, f"{path} has other arrays than expected", remedy)


def _checked(arrays: Arrays, source: ArrayFile, what: str, remedy: str) -> Arrays:
    digest = array_digest(arrays)
    if source.form and digest != source.digest and array_form(arrays) == source.form:
        warnings.warn(
            f"{source.file} was computed again from the original data: its arrays differ from those of the published "
            "figures, which are therefore comparable but not equal.",
            stacklevel=5,
        )
    elif digest != source.digest:
        raise OSError(f"{what}: digest {digest} instead of {source.digest}. {remedy}")
    return arrays


def _from_home(source: ArrayFile, given: str | None, cached: Path) -> Arrays:
    tried = f"{given}/{source.file}" if given else f"the folder {FOLDER_VARIABLE} (not set)"
    not_found = f"{source.file} was not found in {tried} or {cached}"
    remedy = f"put {source.file} into a folder and set {FOLDER_VARIABLE} to that folder."
    if source.parse is None:
        script = f" The script benchmarks/data/{source.script} of the source code makes the file from these data."
        raise FileNotFoundError(
            f"{not_found}. These arrays cannot be downloaded. Original data: {source.origin}."
            f"{script if source.script else ''} To use them, {remedy}"
        )
    try:
        arrays = source.parse(*(_download(url) for url in source.homes))
    except Exception as error:  # no connection, a damaged archive, another format
        raise FileNotFoundError(
            f"{not_found}, and the download from {', '.join(source.homes)} failed ({error}). Try again with a "
            f"connection, or {remedy}"
        ) from error
    changed = f"{' and '.join(source.homes)} no longer contain the arrays of {source.file}"
    return _checked(arrays, source, changed, f"To use them, {remedy}")


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follow a redirect only to https."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        raise ValueError(f"{url} is not an https address. Data are downloaded over https only.")


def _open(url: str) -> IO[bytes]:
    _require_https(url)
    return urllib.request.build_opener(_HttpsOnly).open(url, timeout=TIMEOUT_SECONDS)


def _download(url: str) -> bytes:
    with _open(url) as response:
        content = response.read(SIZE_LIMIT + 1)  # one byte more tells whether the limit is exceeded
    if len(content) > SIZE_LIMIT:
        raise ValueError(f"{url} is larger than the limit of {SIZE_LIMIT} bytes.")
    return content
