"""The process that plays environments for Turnwright: `python -m turnwright.host`."""
