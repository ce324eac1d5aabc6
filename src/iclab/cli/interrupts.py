"""Ctrl-C ends the process even while a compiled program runs and Python handles no signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

PATIENCE = 5.0  # seconds for Python to handle an interrupt itself


def watch_for_interrupts() -> None:
    """From now on, end the process with status 130 if Python does not handle an interrupt within `PATIENCE`.

    The operating system writes every signal to a pipe at once, whatever Python is waiting for. Files are written
    whole or not at all, so it is safe to end the process at any moment.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    heard = threading.Event()

    def act(number: int, frame: Any) -> None:
        heard.set()
        signal.default_int_handler(number, frame)

    def watch() -> None:
        while signal.SIGINT not in os.read(reader, 64):
            pass
        if not heard.wait(PATIENCE):
            sys.stderr.write(
                "iclab: stopped inside a compiled program. To continue, repeat the command with the same --out.\n"
            )
            sys.stderr.flush()
            os._exit(130)

    signal.signal(signal.SIGINT, act)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=watch, name="interrupts", daemon=True).start()
