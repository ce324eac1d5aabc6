"""Ctrl-C that ends the process, also while a compiled program runs and Python hears nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

PATIENCE = 5.0  # seconds that Python has to hear of an interrupt


def watch_for_interrupts() -> None:
    """From now on an interrupt that Python does not act on within `PATIENCE` ends the process with status 130.

    The operating system tells a pipe of every signal at once, whatever Python is waiting for. Files are whole or not
    there at any moment, so a process may be ended anywhere.
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
            sys.stderr.write("iclab: stopped inside a compiled program; the same command with its --out goes on.\n")
            sys.stderr.flush()
            os._exit(130)

    signal.signal(signal.SIGINT, act)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=watch, name="interrupts", daemon=True).start()
