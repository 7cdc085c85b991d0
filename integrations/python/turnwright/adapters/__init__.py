"""Adapters: environments of other Python libraries, as Turnwright plays them."""
