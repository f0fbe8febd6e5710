"""Sends many prepared frames with one system call, `sendmmsg(2)`. Python's socket module lacks this call."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from tcptrace_lab.replay.packets.prepared_frames import Ready

MOST: Final = 1_024
"""Maximum number of messages per call (UIO_MAXIOV, linux/uio.h)."""


class _Message(ctypes.Structure):
    """struct msghdr (sys/socket.h)."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint),
        ("vector", ctypes.c_void_p),
        ("vectors", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Counted(ctypes.Structure):
    """struct mmsghdr (sys/socket.h)."""

    _fields_ = (("message", _Message), ("sent", ctypes.c_uint))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.sendmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)


class Burst:
    """Up to `MOST` frames, which are loaded together, and can be sent in several calls."""

    def __init__(self, frames: Ready) -> None:
        self._frames = frames
        self._base = frames.data.ctypes.data
        self._vectors = np.zeros((MOST, 2), np.uintp)  # struct iovec (sys/uio.h): address and number of bytes of each frame
        self._messages = (_Counted * MOST)()
        self._address = ctypes.addressof(self._messages)
        for number in range(MOST):
            message = self._messages[number].message
            message.vector, message.vectors = self._vectors[number].ctypes.data, 1

    def load(self, first: int, last: int) -> None:
        """Load frames `first` to `last` - 1 of the prepared frames."""
        self._vectors[: last - first, 0] = self._base + self._frames.start[first:last]
        self._vectors[: last - first, 1] = self._frames.size[first:last]

    def send(self, fd: int, first: int, last: int) -> int:
        """Send the loaded frames at positions `first` to `last` - 1. Return how many frames the kernel accepted, at least 1.

        Raises:
            OSError: the kernel refused the first of these frames.
        """
        taken: int = _libc.sendmmsg(fd, self._address + first * ctypes.sizeof(_Counted), last - first, 0)
        if taken < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return taken
