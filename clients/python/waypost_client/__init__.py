"""A typed client of Waypost's HTTP API. ``Waypost`` is the short way; ``Waypost.api`` goes with every function of ``generated``."""

from .client import Claim, Waypost
from .errors import VersionConflict, WaypostError
from .retries import Retries
from .server_events import ServerEvent

__all__ = ["Claim", "Retries", "ServerEvent", "VersionConflict", "Waypost", "WaypostError"]
