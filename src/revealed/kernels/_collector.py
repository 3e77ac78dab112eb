"""No search for reference cycles while a kernel is compiled.

Numba makes millions of small objects for a kernel, nearly all of which stay until it is compiled.
Python's cyclic collector goes through them again and again and frees little: a tenth of the time of
a first fit. It is paused for as long as one kernel takes, and then goes on.
"""

import gc

from numba.core import event


class PauseCollector(event.Listener):  # type: ignore[misc]
    """Pauses the cyclic collector from the start to the end of a compilation.

    Kernels that another one calls are compiled within it: only the outermost counts. Numba compiles
    in one thread at a time, so that starts and ends are nested.
    """

    def __init__(self) -> None:
        """Begin outside any compilation."""
        self.depth = 0
        self.was_enabled = False

    def on_start(self, event: event.Event) -> None:
        """Pause where the outermost compilation begins."""
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """Leave the collector as it was found, also where compiling has failed."""
        self.depth -= 1
        if self.depth == 0 and self.was_enabled:
            gc.enable()


event.register("numba:compile", PauseCollector())
