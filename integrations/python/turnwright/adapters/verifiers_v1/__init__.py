"""The new stack of verifiers, from 0.4: task sets, tasks and agents."""
