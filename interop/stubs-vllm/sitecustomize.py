"""Loaded by Python at its start. Lets Triton's interpreter stand for a compiler, which vLLM's model runner V2 asks for on a CPU.

The interpreter cannot run vLLM's kernel for top-k and top-p: vLLM's own PyTorch code takes its place.
"""

import importlib.abc
import importlib.machinery
import sys
import types


class _ActiveDriver:
    @staticmethod
    def is_active():
        return True


def _add_backend(module):
    module.backends["cpu"] = types.SimpleNamespace(driver=_ActiveDriver, compiler=None)


def _leave_triton_out(module):
    module.HAS_TRITON = False


class _Changes(importlib.abc.MetaPathFinder):
    """Changes modules when they are loaded, each once."""

    changes = {"triton.backends": _add_backend, "vllm.v1.sample.ops.topk_topp_sampler": _leave_triton_out}

    def find_spec(self, name, path=None, target=None):
        change = self.changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            change(module)

        spec.loader.exec_module = load_and_change
        return spec


sys.meta_path.insert(0, _Changes())
