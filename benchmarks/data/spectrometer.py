"""Make uci_spectrometer_lrs.npz from Weka's conversion of the Low Resolution Spectrometer set of UCI.

python benchmarks/data/spectrometer.py FOLDER --out DATA

FOLDER has spectrometer.arff, for example from https://github.com/Hyarcher/Weka (commit 56dbbc8). Its comments have the
wavelengths of the fluxes in micrometers ("% - 11. 7.8636"). Columns: name, class, eight header values, 44 blue and 49
red fluxes. The arrays are exact. UCI's own file lrs.data has another format, which this script does not read.

Terms: Creative Commons Attribution 4.0, as the UCI repository states for its sets.
"""

import re

import numpy as np
from _common import find_files, run


def build(folder):
    ((_, path),) = find_files(folder, r"(^|/)spectrometer\.arff$")
    head, _, data = path.read_text(encoding="ascii").partition("@data")
    names = np.array(re.findall(r"^@attribute\s+(\S+)", head, re.MULTILINE)[2:])
    wavelengths = re.findall(r"^%\s+-\s+\d+\.\s+([\d.]+)\s*$", head, re.MULTILINE)
    rows = np.array([line.split(",") for line in data.splitlines() if line.strip() and not line.startswith("%")])
    colors = {color: np.char.startswith(names, f"{color}-band") for color in ("blue", "red")}
    places = {**colors, "header": ~(colors["blue"] | colors["red"])}
    arrays = {
        "X": rows[:, 2:].astype(np.float64),
        "y": rows[:, 1].astype(np.int16),
        "lrs_name": np.array([name.strip() for name in rows[:, 0]]),
        "feature_names": names,
        "flux_wavelength_um": np.array(wavelengths, dtype=np.float64),
    }
    arrays |= {f"{view}_cols": np.flatnonzero(chosen).astype(np.int16) for view, chosen in places.items()}
    return {"uci_spectrometer_lrs.npz": arrays}


if __name__ == "__main__":
    raise SystemExit(run(__doc__, build, {"folder": "folder with spectrometer.arff"}))
