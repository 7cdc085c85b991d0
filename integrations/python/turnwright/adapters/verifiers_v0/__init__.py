"""The old stack of verifiers, 0.1.14 to 0.3."""
