"""Retries with backoff, below everything that sends requests.

Only what cannot be done twice by it is sent again: reads, requests with an ``Idempotency-Key``, and requests that never reached
the server or that it turned away before it looked at them (429).
"""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass
from typing import Callable

import httpx

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# The server, or what stands before it, is busy or starts again.
RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """How often and how long a request is tried again. ``tries=1`` sends everything once."""

    tries: int = 5
    first_seconds: float = 0.25
    seconds_max: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, tried: int) -> float:
        """Seconds before the next try: twice as long each time, and never the same for two clients."""
        longest = min(self.seconds_max, self.first_seconds * 2 ** min(tried - 1, 30))
        return random.uniform(longest / 2, longest)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait, from a number or a date."""
    value = response.headers.get("retry-after", "").strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


class RetryTransport(httpx.BaseTransport):
    """Sends requests through another transport, again where that is safe."""

    def __init__(self, inner: httpx.BaseTransport, retries: Retries) -> None:
        self._inner, self._retries = inner, retries

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        is_safe = request.method in SAFE_METHODS or "idempotency-key" in request.headers
        tried = 0
        while True:
            tried += 1
            is_last = tried >= self._retries.tries
            try:
                response = self._inner.handle_request(request)
            except httpx.TransportError as error:
                was_never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                if is_last or not (is_safe or was_never_sent):
                    raise
                self._retries.sleep(self._retries.pause(tried))
                continue
            is_retried = response.status_code in RETRIED_STATUSES and (is_safe or response.status_code == 429)
            wanted = retry_after(response)
            if is_last or not is_retried or (wanted is not None and wanted > self._retries.seconds_max):
                return response
            response.close()
            self._retries.sleep(self._retries.pause(tried) if wanted is None else wanted)

    def close(self) -> None:
        self._inner.close()
