"""Loaded by Python at its start. Lets Triton's interpreter stand for a compiler, which vLLM's model runner V2 asks for on a CPU.

The interpreter cannot run vLLM's kernel for top-k and top-p: vLLM's own PyTorch code takes its place. On a CPU, vLLM packs
the weights of experts at its start, and not when it loads other weights: they are packed here.
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


def _pack_again(module):
    method = module.UnquantizedFusedMoEMethod
    set_up = method._setup_kernel

    def set_up_and_pack(self, layer, *args, **kwargs):
        is_update = self.moe_kernel is not None
        set_up(self, layer, *args, **kwargs)
        if is_update:
            self.moe_kernel.fused_experts.process_weights_after_loading(layer)

    method._setup_kernel = set_up_and_pack


class _Changes(importlib.abc.MetaPathFinder):
    """Changes modules when they are loaded, each once."""

    changes = {
        "triton.backends": _add_backend,
        "vllm.v1.sample.ops.topk_topp_sampler": _leave_triton_out,
        "vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method": _pack_again,
    }

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
