"""The command line."""

from importlib.util import find_spec

if not (find_spec("typer") and find_spec("rich")):
    raise SystemExit("The command line needs typer and rich: pip install 'consilience[cli]'.")
