"""Shims: what each trainer calls for rollouts, over the rollout service.

All read TURNWRIGHT_URL, TURNWRIGHT_TOKEN and TURNWRIGHT_SPLIT (default `train`) from the environment.
"""
