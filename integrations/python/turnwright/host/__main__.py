"""Starts the host. The protocol's descriptors are taken before any other code is imported."""

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 10):
        sys.exit("Python %s is too old, expected 3.10 or newer (--python names an interpreter)" % sys.version.split()[0])
    if sys.platform == "linux":
        import ctypes

        # The process dies with the one that started it: PR_SET_PDEATHSIG, SIGKILL.
        ctypes.CDLL(None).prctl(1, 9)
    from turnwright.host.guard import start_guard

    start_guard()
    from turnwright.host import descriptors  # noqa: F401 - the import takes them
    from turnwright.host.serve import serve

    serve()
