"""Files: tables to `Views` and streams, model files, atomic writes."""
