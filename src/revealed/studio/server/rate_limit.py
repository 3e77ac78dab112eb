"""How much one address may ask for: token buckets, in a bounded number."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable


class RateLimit:
    """A token bucket for each address.

    A bucket holds at most `burst` tokens and is refilled at `rate` a second; a request takes one
    token, or is refused. Only the `max_addresses` most recently seen buckets are kept (default:
    10,000, about 2 MB), so that requests from many forged addresses cannot fill the memory.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        max_addresses: int = 10_000,
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._max_addresses = max_addresses
        # address -> (tokens left, when they were counted), least recently seen first
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Whether an address has a token left; takes it."""
        now = self._clock()
        tokens, counted_at = self._buckets.pop(address, (self._burst, now))
        # What has flowed in since the last request, up to the brim.
        tokens = min(self._burst, tokens + self._rate * (now - counted_at))
        allowed = tokens >= 1.0
        self._buckets[address] = (tokens - 1.0 if allowed else tokens, now)
        if len(self._buckets) > self._max_addresses:
            self._buckets.popitem(last=False)
        return allowed
