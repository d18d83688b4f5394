"""Server-sent events that survive lost connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Mapping

import httpx

from .errors import WaypostError
from .retries import Retries

# The server sends a comment after 15 seconds without an event: three times that is a dead connection.
SILENCE_SECONDS_MAX = 45.0
# Refusals that pass: the request took too long, or there are too many at once.
PASSING_STATUSES = frozenset({408, 429})


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream. ``id`` is that of the last event that had one."""

    id: str
    name: str
    data: str


class EventParser:
    """Splits the text of a stream into events, however it is cut into pieces."""

    def __init__(self, last_id: str = "") -> None:
        self._rest, self._id, self._name = "", last_id, ""
        self._data: list[str] = []

    def take(self, piece: str) -> Iterator[ServerEvent]:
        """Takes the next piece and returns the events that it completes."""
        text = self._rest + piece
        # A piece that ends in CR may be continued by LF, which together end one line.
        held = "\r" if text.endswith("\r") else ""
        lines = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        for line in lines:
            if event := self._line(line):
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._id, self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id" and "\0" not in value:
            self._id = value
        elif field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None


def follow(
    http: httpx.Client, path: str, parameters: Mapping[str, str], retries: Retries, last_id: str = ""
) -> Iterator[ServerEvent]:
    """Yields the events of a stream. Connects again after the last event whenever the connection ends; ends only when the
    server refuses."""
    lost = 0
    while True:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if last_id:
            headers["last-event-id"] = last_id
        timeout = httpx.Timeout(http.timeout.connect, read=SILENCE_SECONDS_MAX)
        try:
            with http.stream("GET", path, params=dict(parameters), headers=headers, timeout=timeout) as response:
                parser = EventParser(last_id)
                for piece in response.iter_text():
                    for event in parser.take(piece):
                        lost, last_id = 0, event.id
                        yield event
        except WaypostError as error:
            if error.status < 500 and error.status not in PASSING_STATUSES:
                raise
        except httpx.TransportError:
            pass
        lost += 1
        retries.sleep(retries.pause(lost))

