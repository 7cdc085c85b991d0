"""Replaces sgl_kernel, which exists for GPUs only. Any name can be imported, and none can be called."""

import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "0.4.10"


class _Absent:
    """A placeholder for a kernel. Compares by name, because SGLang uses some as keys."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *_args, **_options):
        raise RuntimeError(f"{self.__name__} is not there: this machine has no GPU kernels")

    def __getattr__(self, member):
        if member.startswith("__"):
            raise AttributeError(member)
        return _Absent(f"{self.__name__}.{member}")

    def __eq__(self, other):
        return isinstance(other, _Absent) and other.__name__ == self.__name__

    def __hash__(self):
        return hash(self.__name__)


class _AbsentModule(types.ModuleType):
    def __getattr__(self, member):
        if member.startswith("__"):
            raise AttributeError(member)
        return _Absent(f"{self.__name__}.{member}")


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith(f"{__name__}."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _AbsentModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def __getattr__(member):
    if member.startswith("__"):
        raise AttributeError(member)
    return _Absent(f"{__name__}.{member}")


sys.meta_path.append(_Submodules())
