"""Faults of the system around the library: ``python trust/faults.py [--long]``.

Disks that are full or fail, pipes that nobody reads, files that are cut off, clocks that jump, and signals. Commands
run in children that are forked from this process, so that thousands of faults take minutes.
"""

import os

if __name__ == "__main__":  # children are forked: no threads of BLAS
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import ctypes
import errno
import json
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import _commands
import _damage
import _forks
import _works
from _works import PRINTING, WORKS
from check import Check, Figure, Found, main

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT)


class Place:
    """A folder for a work, with its inputs, what an undisturbed run leaves, and what was there before."""

    def __init__(self, name, home, inputs):
        self.name, self.work, self.inputs = name, WORKS[name], inputs
        self.folder = home / "work"
        _works.fresh(self.folder, inputs)
        ended = _commands.run([*self.work.words], self.folder)
        if ended.code:
            raise RuntimeError(f"{name} failed without being disturbed: {ended.errors}")
        self.expected = _works.outcome(self.folder, self.work)
        if set(self.expected) != set(self.work.files) or _works.others(self.folder, self.work):
            raise RuntimeError(f"{name} left other files: {_works.others(self.folder, self.work)}")
        # what a stream writes along the way is replaced by a new one, so no older file is kept there
        self.older = {} if self.work.resume else {file: (self.folder / file).read_bytes() for file in self.work.files}
        if name == "reproduce":
            self.older = {}  # complete results would be returned as they are
        self.old = {file: self.expected[file] for file in self.older}

    def start(self):
        """Begin with the inputs and the older files."""
        _works.fresh(self.folder, self.inputs, self.older)

    def after_a_fault(self, ended, allowed=(0, 1)):
        """Return what is wrong after a fault, or None: then the next run must end in the right result."""
        if ended.code not in allowed:
            return f"exit status {ended.code}: {ended.errors[-600:]}"
        return _works.complaints(ended) or self.files() or self.again()

    def files(self):
        """Return what is wrong about the files after a fault."""
        for file in self.older:
            if not (self.folder / file).exists():
                return f"{file} is gone"
        for file in self.work.files:
            try:
                if (self.folder / file).exists():
                    _works.content_of(self.folder / file)
            except Exception as error:
                return f"{file} is not whole: {error}"
        left = [name for name in _works.others(self.folder, self.work) if name.endswith(".partial")]
        return f"files pile up: {left}" if len(left) > 2 else None

    def again(self):
        """Run the work once more, without a fault, and compare."""
        going_on = self.work.resume if (self.folder / "state.cons").exists() else ()
        if self.work.resume and not going_on:  # a new stream appends to the rows of others
            (self.folder / "bad.jsonl").unlink(missing_ok=True)
        ended = _commands.run([*self.work.words, *going_on], self.folder)
        if ended.code:
            return f"the next run ends with {ended.code}: {ended.errors[-600:]}"
        found = _works.outcome(self.folder, self.work)
        different = [file for file in self.work.files if found.get(file) != self.expected[file]]
        left = _works.others(self.folder, self.work)
        if different or left:
            return f"after the next run {different} differ, {left} are left"
        return None


class Tally:
    """Cases of one kind that were tried, those that failed, and the exit statuses."""

    def __init__(self, what):
        self.what, self.tried, self.failed, self.met = what, 0, 0, 0

    def add(self, wrong, about, met=False):
        """Count a case; print what is wrong."""
        self.tried += 1
        self.met += met
        if wrong:
            self.failed += 1
            print(f"{self.what}: {about}: {wrong}", file=sys.stderr)

    def figure(self, note=""):
        """Return the line of the record."""
        return Figure(self.what, self.tried, self.failed, note.format(met=self.met))


# -- disks
def disk_faults(home, inputs, long, rng):
    """Let calls, writes and sizes fail in every command that writes."""
    calls = Tally("a call of the system that fails: no room, a broken disk, a quota, no permission, read-only")
    writes = Tally("a write or a sync that fails after half of its bytes")
    sizes = Tally("a file that cannot grow beyond a random size")
    for name in WORKS if long else ("fit", "stream"):
        place = Place(name, home, inputs)
        for number in chosen(count_calls(place, home), {"compare": 40}.get(name, 200) if long else 4, rng):
            place.start()
            code = rng.choice(ERRORS)
            ended = _commands.run([*place.work.words], place.folder, _commands.failing(place.folder, number, code))
            calls.add(place.after_a_fault(ended), f"{name}, call {number}, {errno.errorcode[code]}", ended.code != 0)
        for number in chosen(30, {"compare": 4}.get(name, 30) if long else 2, rng):
            place.start()
            code = rng.choice(ERRORS)
            ended = _commands.run([*place.work.words], place.folder, _commands.failing_writes(number, code))
            writes.add(place.after_a_fault(ended), f"{name}, write {number}, {errno.errorcode[code]}", ended.code != 0)
        largest = max((place.folder / file).stat().st_size for file in place.work.files)
        for _ in range(({"compare": 10}.get(name, 60)) if long else 2):
            place.start()
            size = rng.randrange(largest)
            ended = _commands.run([*place.work.words], place.folder, _commands.limited(size))
            sizes.add(place.after_a_fault(ended), f"{name}, {size} bytes", ended.code != 0)
    note = "{met} were told in a sentence; after each of them the next run ended in the right result"
    return [each.figure(note) for each in (calls, writes, sizes)]


def count_calls(place, home):
    """Return how many calls of the system a work makes in its folder."""
    place.start()
    file = home / "count"
    ended = _commands.run([*place.work.words], place.folder, _commands.counting(place.folder, file))
    if ended.code:
        raise RuntimeError(f"{place.name} failed without being disturbed: {ended.errors}")
    return file.stat().st_size


def chosen(total, most, rng):
    """Return all numbers from 1 on, or a random choice of them."""
    return range(1, total + 1) if total <= most else sorted(rng.sample(range(1, total + 1), most))


def full_disks(inputs, rng, cases):
    """Fill a small file system, in a child with mounts of its own; None where this is not allowed."""
    with tempfile.TemporaryDirectory() as name:
        home, results = Path(name), Path(name) / "results.json"
        if _forks.ended(_forks.fork(lambda: fill_disks(home / "disk", inputs, results, rng, cases))):
            return None
        tally = Tally("a file system of a random size that is full")
        tally.tried, tally.failed, tally.met = json.loads(results.read_text())
        return tally.figure("{met} met the end of the disk; after each of them the next run, with room, ended right")


def fill_disks(disk, inputs, results, rng, cases):
    """Run works on a small file system."""
    libc = ctypes.CDLL(None, use_errno=True)
    disk.mkdir()

    def mount(size, flags=0):
        if libc.mount(b"tmpfs", bytes(disk), b"tmpfs", flags, f"size={size}k".encode()):
            raise OSError(ctypes.get_errno(), "mount")

    new_mounts, private, remount = 0x20000, 0x40000 | 0x4000, 32
    if libc.unshare(new_mounts) or libc.mount(b"none", b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "unshare")
    mount(20_000)
    tally = Tally("a full file system")
    for name in WORKS:
        place = Place(name, disk, inputs)
        largest = sum((place.folder / file).stat().st_size for file in place.work.files) // 1024 + 8
        for _ in range(cases if name != "compare" else cases // 5):
            mount(20_000, remount)
            place.start()
            used = sum(-(-path.stat().st_size // 4096) * 4 for path in place.folder.rglob("*") if path.is_file())
            size = used + rng.randrange(4, max(2 * largest, 40), 4)
            mount(size, remount)
            ended = _commands.run([*place.work.words], place.folder)
            wrong = place.files() or _works.complaints(ended)
            mount(20_000, remount)
            tally.add(wrong or place.after_a_fault(ended), f"{name}, {size} KiB", ended.code != 0)
    results.write_text(json.dumps([tally.tried, tally.failed, tally.met]))


# -- pipes and streams
def pipe_ends(rng):
    """Return the manners in which standard output or error cannot be written: (name, out, err, allowed statuses)."""
    return {
        "a pipe that nobody reads": (closed_pipe, None, (141,)),
        "errors into a pipe that nobody reads": (None, closed_pipe, (0,)),
        "both into pipes that nobody reads": (closed_pipe, closed_pipe, (141,)),
        "a full device": (full_device, None, (1,)),
        "errors into a full device": (None, full_device, (0,)),
        "no standard output": (lambda: None, None, (0,)),
        "no standard error": (None, lambda: None, (0,)),
        "neither output nor error": (lambda: None, lambda: None, (0,)),
    }


def closed_pipe():
    """Return the end of a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_device():
    """Return a device on which nothing can be written."""
    return os.open("/dev/full", os.O_WRONLY)


def pipe_faults(home, inputs, long, rng):
    """Close or fill the streams of every command, at once and after some bytes."""
    streams = Tally("a standard stream that is closed, full, or a pipe that nobody reads")
    for name in [*WORKS, *PRINTING] if long else ["predict", "predict, printed", "help"]:
        place = Place(name, home, inputs) if name in WORKS else None
        words = place.work.words if place else PRINTING[name]
        folder = place.folder if place else _works.fresh(home / "work", inputs)
        expected = None if place else _commands.run([*words], folder)
        for how, (out, err, allowed) in pipe_ends(rng).items():
            if place:
                place.start()
            ended = _commands.run([*words], folder, out=out, err=err)
            wrong = None if ended.code in allowed else f"exit status {ended.code}: {ended.errors[-500:]}"
            wrong = wrong or (_works.complaints(ended) if err is None else None)
            if place:
                wrong = wrong or whole(place)
            elif out is None and ended.output != expected.output:
                wrong = wrong or "the output is another one"
            streams.add(wrong, f"{name}, {how}", ended.code != 0)
    heads = Tally("a reader that closes the pipe after a random number of bytes")
    for _ in range(120 if long else 2):
        name = rng.choice([*PRINTING])
        folder = _works.fresh(home / "work", inputs)
        size = rng.randrange(1, 3000)
        child, (output, errors) = _commands.start([*PRINTING[name]], folder)
        os.read(output, size)
        os.close(output)
        ended = _commands.Ended(_forks.ended(child), "", _commands._content(errors))
        wrong = None if ended.code in (0, 141) else f"exit status {ended.code}: {ended.errors[-500:]}"
        heads.add(wrong or _works.complaints(ended), f"{name}, {size} bytes")
    return [streams.figure("the files are complete in all of them"), heads.figure()]


def whole(place):
    """Return what is wrong about files that must be complete."""
    found = _works.outcome(place.folder, place.work)
    different = [file for file in place.work.files if found.get(file) != place.expected[file]]
    return f"{different} differ" if different else None


# -- signals
def signal_faults(home, inputs, long, rng):
    """Stop every command at random moments by Ctrl-C and SIGTERM."""
    tally = Tally("Ctrl-C or SIGTERM at a random moment")
    for name in WORKS if long else ("stream",):
        place = Place(name, home, inputs)
        place.start()
        begun = time.monotonic()
        _commands.run([*place.work.words], place.folder)
        seconds = time.monotonic() - begun
        for _ in range({"compare": 15}.get(name, 60) if long else 3):
            place.start()
            number, code = rng.choice([(signal.SIGINT, 130), (signal.SIGTERM, 143)])
            ready, begin = os.pipe()
            child, (output, errors) = _commands.start([*place.work.words], place.folder, partial(os.write, begin, b"."))
            os.read(ready, 1)
            time.sleep(0.002 + rng.random() * seconds)  # after the first lines of the program
            os.kill(child, number)
            ended = _commands.Ended(_forks.ended(child), _commands._content(output), _commands._content(errors))
            os.close(ready)
            os.close(begin)
            allowed = (0, code, -number)  # -SIGTERM: the command had ended, and its handler was gone
            met = ended.code == code
            if ended.code == -number:
                ended = ended._replace(code=0)
            tally.add(place.after_a_fault(ended, allowed), f"{name}, signal {number.name}", met)
    return [tally.figure("{met} met the command at work; after each of them the next run ended in the right result")]


# -- all
def run(long):
    """Try all faults; in the long run hundreds of times each."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        home, inputs = Path(name), Path(name) / "inputs"
        inputs.mkdir()
        warm_up(inputs, home, long)
        figures = disk_faults(home, inputs, long, rng)
        if long and (full := full_disks(inputs, rng, 40)):
            figures.append(full)
        figures += pipe_faults(home, inputs, long, rng) + signal_faults(home, inputs, long, rng)
    figures += _damage.cut_files(long, rng) + _damage.changing_files(long) + _damage.clocks(long, rng)
    return Found(figures)


def warm_up(inputs, home, long):
    """Import and compile in this process what its children use, so that they start at once."""
    _works.write_inputs(inputs)
    from fuzzing.commands import call, working_in  # commands in this process

    for name in WORKS if long else ("fit", "predict", "stream"):
        with working_in(_works.fresh(home / "work", inputs)), _works.with_experiment():
            done = call([*WORKS[name].words])
        if done.code:
            raise RuntimeError(f"{name} failed without being disturbed: {done.errors}")


CHECK = Check(
    "faults",
    "Faults of the system",
    "Where a disk is full or broken, a pipe is closed, a file is cut off or a signal comes, a command ends with one "
    "sentence and a known exit status. Files are the old ones or the new ones, never a part. The next run without the "
    "fault ends in the right result. A clock that stands still or jumps changes no result.",
    run,
    (
        "Faults are tried on Linux.",
        "An Arrow file that another program shortens while it is read may end the process: it is mapped into memory.",
        "A signal while Python itself starts or ends may show a traceback.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(CHECK))
