"""Loaded by Python at its start. Reports to SGLang that the CPU has no AMX, because the AMX kernels are missing."""

import importlib.abc
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
