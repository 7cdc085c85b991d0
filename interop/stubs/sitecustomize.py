"""Loaded by Python at its start: tells SGLang that the CPU has no AMX, whose kernels are not there."""

import importlib.abc
import sys


class _BeforeSglang(importlib.abc.MetaPathFinder):
    """Acts when SGLang's runtime is first imported, and torch can be, and finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "sglang.srt":
            sys.meta_path.remove(self)
            import torch

            torch._C._cpu._is_amx_tile_supported = lambda: False
        return None


sys.meta_path.insert(0, _BeforeSglang())
