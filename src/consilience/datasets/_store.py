"""Where the arrays of a data set come from: a folder of files, the cache, the public home; checked on every way.

A file is known by the digest of its arrays, not of its bytes, so the same check holds for a file that was given, one
that was cached, and one that was just parsed from its public home.
"""

import hashlib
import os
import urllib.request
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
class Source:
    """One file of arrays: its name, the digest of its arrays, and how its public home is read.

    Parameters
    ----------
    file : str
        Name of the npz file.
    digest : str
        What `array_digest` gives for its arrays.
    origin : str
        Where the original data live, for the message when no file is found.
    homes : tuple of str
        Addresses (https) of the original files, all of them needed; empty where they cannot be had in this form.
    parse : callable or None
        Turns the bytes behind `homes`, one argument each, into the arrays.
    """

    file: str
    digest: str
    origin: str
    homes: tuple[str, ...] = ()
    parse: Callable[..., Arrays] | None = None


def array_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the arrays: name, type, shape and little-endian bytes of each, in the order of names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"))
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def read_arrays(source: Source, data_home: str | os.PathLike[str] | None) -> Arrays:
    """Return the checked arrays of a source from the first place that has them."""
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


def _read_checked(path: Path, source: Source) -> Arrays:
    remedy = f"Remove or replace it; original data: {source.origin}."
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # a damaged file fails in many ways, and all mean the same
        raise OSError(f"{path} is not a readable npz file of plain arrays ({error}). {remedy}") from error
    found = array_digest(arrays)
    if found != source.digest:
        raise OSError(
            f"{path} does not hold the expected arrays: digest {source.digest} expected, {found} found. {remedy}"
        )
    return arrays


def _from_home(source: Source, given: str | None, cached: Path) -> Arrays:
    tried = [f"{given}/{source.file}" if given else f"the folder named by {FOLDER_VARIABLE} (not set)", str(cached)]
    if source.parse is None:
        raise FileNotFoundError(
            f"{source.file} was not found; tried {' and '.join(tried)}. No public home serves these arrays, so they "
            f"cannot be downloaded. Original data: {source.origin}. Put {source.file} into a folder and name that "
            f"folder in {FOLDER_VARIABLE}."
        )
    try:
        arrays = source.parse(*(_download(url) for url in source.homes))
    except Exception as error:  # no answer, a broken archive, another format: all mean that the home gives no data
        raise FileNotFoundError(
            f"{source.file} was not found; tried {', '.join([*tried, *source.homes])}; the download failed ({error}). "
            f"Try again with a connection, or put {source.file} into a folder and name that folder in "
            f"{FOLDER_VARIABLE}."
        ) from error
    found = array_digest(arrays)
    if found != source.digest:
        raise OSError(
            f"{' and '.join(source.homes)} no longer give the arrays of {source.file}: digest {source.digest} "
            f"expected, {found} found. Put the file itself into a folder and name that folder in {FOLDER_VARIABLE}."
        )
    return arrays


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follow a redirect only to https."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        raise ValueError(f"{url} is not an https address; data are taken from https only.")


def _open(url: str) -> IO[bytes]:
    _require_https(url)
    return urllib.request.build_opener(_HttpsOnly).open(url, timeout=TIMEOUT_SECONDS)


def _download(url: str) -> bytes:
    with _open(url) as answer:
        content = answer.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise ValueError(f"{url} is larger than the limit of {SIZE_LIMIT} bytes; nothing was kept.")
    return content
