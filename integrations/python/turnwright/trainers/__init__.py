"""Shims: each gets rollouts for one trainer from the rollout service.

All read TURNWRIGHT_URL, TURNWRIGHT_TOKEN and TURNWRIGHT_SPLIT (default `train`) from the environment.
"""
