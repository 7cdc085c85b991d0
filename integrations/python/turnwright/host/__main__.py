"""Starts the host. The protocol's descriptors are taken before any other code is imported."""

import os
import sys

if __name__ == "__main__":
    if sys.platform == "linux":
        import ctypes

        # The process dies with the one that started it: PR_SET_PDEATHSIG, SIGKILL.
        ctypes.CDLL(None).prctl(1, 9)
        if os.getppid() == 1 and os.environ.get("TURNWRIGHT_PARENT") not in (None, "1"):
            sys.exit(0)
    from turnwright.host import descriptors  # noqa: F401 - the import takes them
    from turnwright.host.serve import serve

    serve()
