"""The end of a client."""

from __future__ import annotations


class Client:
    """A client that tells whether it was closed; whoever made it forgets it then.

    closed: set by its `close`
    """

    closed = False
