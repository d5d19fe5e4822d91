"""What ``import consilience`` adds to ``import sklearn``, in fresh processes.

Run by ``python benchmarks/import_time.py``.
"""

import statistics
import subprocess
import sys
import time


def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
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


if __name__ == "__main__":
    main()
