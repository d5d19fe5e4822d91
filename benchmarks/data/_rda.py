"""Reader of R data files (.rda) with plain lists, vectors, matrices and factors.

``read_rda(content)`` returns the objects of the file by name. A value is an `RValue`: its data (an array, a list of
strings or a list of values) and its attributes by name, such as `names`, `dim`, `dimnames`, `levels`, `row.names`.
"""

import bz2
import gzip
import lzma
import struct
from dataclasses import dataclass, field

import numpy as np

SYMBOL, PAIRS, CHARACTERS, LOGICALS, INTEGERS, REALS, STRINGS, LISTS = 1, 2, 9, 10, 13, 14, 16, 19
REFERENCE, GLOBAL_ENVIRONMENT, EMPTY, COMPACT = 255, 253, 254, 238


@dataclass
class RValue:
    """An R object: its data and its attributes."""

    data: object
    attributes: dict = field(default_factory=dict)

    def __getitem__(self, name):
        """Return the item of a list by its name; upper and lower case are the same."""
        names = [known.lower() for known in self.attributes["names"].data]
        return self.data[names.index(name.lower())]


def unpack(content):
    for start, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ", lzma)):
        if content.startswith(start):
            return module.decompress(content)
    return content


def read_rda(content):
    content = unpack(content)
    if content[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise ValueError("This is not an R data file in the binary format of versions 2 and 3.")
    reader = _Reader(content, 7)
    (version,) = reader.integers(1)
    reader.integers(2)  # versions of R that wrote it and that can read it
    if version == 3:
        reader.take(int(reader.integers(1)[0]))  # name of the encoding
    return dict(reader.pairs(int(reader.integers(1)[0])))


class _Reader:
    def __init__(self, content, place):
        self.content, self.place, self.symbols = content, place, []

    def take(self, n):
        part = self.content[self.place : self.place + n]
        if len(part) != n:
            raise ValueError("The R data file is cut off.")
        self.place += n
        return part

    def integers(self, n):
        return np.frombuffer(self.take(4 * n), dtype=">i4").astype(np.int32)

    def flags(self):
        return struct.unpack(">I", self.take(4))[0]

    def pairs(self, flags):
        """Return the (tag, value) of a pairlist."""
        found = []
        while flags & 0xFF == PAIRS:
            if flags & 0x200:
                self.value(self.flags())  # attributes of the list itself
            tag = self.value(self.flags()).data if flags & 0x400 else None
            found.append((tag, self.value(self.flags())))
            flags = self.flags()
        return found

    def value(self, flags):
        kind = flags & 0xFF
        if kind == SYMBOL:
            self.symbols.append(self.value(self.flags()))
            return self.symbols[-1]
        if kind == REFERENCE:
            return self.symbols[(flags >> 8 or int(self.integers(1)[0])) - 1]
        if kind in (EMPTY, GLOBAL_ENVIRONMENT):
            return RValue(None)
        if kind == PAIRS:
            return RValue(self.pairs(flags))
        if kind == CHARACTERS:
            size = int(self.integers(1)[0])
            # bit 2 of the levels (from bit 12 on) marks Latin-1
            return RValue(None if size < 0 else self.take(size).decode("latin-1" if flags >> 12 & 4 else "utf-8"))
        return self.vector(kind, flags)

    def vector(self, kind, flags):
        if kind not in (LOGICALS, INTEGERS, REALS, STRINGS, LISTS):
            remedy = " Save it in R by save(..., version = 2)." if kind == COMPACT else ""
            raise ValueError(f"The R data file has an object of type {kind}, which this reader does not know.{remedy}")
        n = int(self.integers(1)[0])
        if kind == REALS:
            data = np.frombuffer(self.take(8 * n), dtype=">f8").astype(np.float64)
        elif kind in (LOGICALS, INTEGERS):
            data = self.integers(n)
        else:
            data = [self.value(self.flags()) for _ in range(n)]
            data = [item.data for item in data] if kind == STRINGS else data
        attributes = dict(self.pairs(self.flags())) if flags & 0x200 else {}
        return RValue(data, attributes)
