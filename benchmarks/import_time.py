"""What ``import consilience`` adds to ``import sklearn``, and ``consilience --help`` to nothing, in fresh processes.

Run by ``python benchmarks/import_time.py``.
"""

import statistics
import subprocess
import sys
import time

HELP = "from consilience.cli.main import main; main()"


def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    codes = {
        "import sklearn": "import sklearn",
        "import sklearn, consilience": "import sklearn, consilience",
        "... and the names Views, PerView, LateFusion": (
            "import sklearn, consilience; consilience.Views, consilience.PerView, consilience.LateFusion"
        ),
    }
    times = {name: [] for name in codes}
    for _ in range(9):
        for name, code in codes.items():
            times[name].append(seconds(code))
    base = statistics.median(times["import sklearn"])
    for name, record in times.items():
        middle = statistics.median(record)
        print(f"{name:<46} {1000 * middle:6.0f} ms  (+{1000 * (middle - base):.0f} ms)")
    pairs = [(seconds("pass"), seconds("import sys; sys.argv = ['consilience', '--help']; " + HELP)) for _ in range(9)]
    nothing, helped = (statistics.median(column) for column in zip(*pairs, strict=True))
    added = 1000 * (helped - nothing)
    print(f"{'consilience --help':<46} {1000 * helped:6.0f} ms  (+{added:.0f} ms to python -c pass)")


if __name__ == "__main__":
    main()
