"""Refusals of the server, from its problem documents (RFC 9457)."""

from __future__ import annotations

from typing import Any, Mapping

import httpx


# Of an error that is not a problem document.
DETAIL_CHARACTERS_MAX = 500


class WaypostError(Exception):
    """The server refused a request. ``code`` is stable; ``hint`` says what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = problem.get("code") or "error"
        self.detail: str = problem.get("detail") or problem.get("title") or f"the server replied {status}"
        self.hint: str = problem.get("hint") or ""
        self.problem = dict(problem)
        super().__init__(f"{self.detail} ({self.code})" + (f"; {self.hint}" if self.hint else ""))


class VersionConflict(WaypostError):
    """The plan changed since the version that the write named. ``problem["conflict"]`` lists the changes."""


def raise_refusal(response: httpx.Response) -> None:
    """Raises the exception for a response that is an error, before anything parses it: what stands before the server may send
    something else than a problem document."""
    if not response.is_error:
        return
    response.read()
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"title": response.reason_phrase, "detail": response.text[:DETAIL_CHARACTERS_MAX]}
    kind = VersionConflict if response.status_code == 412 else WaypostError
    raise kind(response.status_code, problem)
