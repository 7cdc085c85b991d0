"""Loaded by Python at its start. Reports to SGLang that the CPU has no AMX, because the AMX kernels are missing, and gives it the
buffer of routed experts without CUDA's registration of memory."""

import importlib.abc
import importlib.machinery
import sys


class _BeforeSglang(importlib.abc.MetaPathFinder):
    """Acts when SGLang's runtime is first imported and torch is importable. Finds no module itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "sglang.srt":
            sys.meta_path.remove(self)
            import torch

            torch._C._cpu._is_amx_tile_supported = lambda: False
        return None


sys.meta_path.insert(0, _BeforeSglang())


class _AfterHostPool(importlib.abc.MetaPathFinder):
    """Replaces a function of SGLang's module of host memory when the module is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "sglang.srt.mem_cache.pool_host.common":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def load_without_cuda(module):
            load(module)
            module._cuda_host_register = lambda *_, **__: None

        spec.loader.exec_module = load_without_cuda
        return spec


sys.meta_path.insert(0, _AfterHostPool())
