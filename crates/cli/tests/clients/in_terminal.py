"""Runs a command in a terminal of its own, types Ctrl-C once it has printed "ready", prints what
it printed, and ends with its exit code.

Usage: in_terminal.py COMMAND [ARGUMENT]...
"""

import os
import pty
import signal
import sys

pid, terminal = pty.fork()
if pid == 0:
    # Who was started in the background ignores it, and so would the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
printed, typed = b"", False
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        # The last that had the terminal open has ended.
        break
    if not chunk:
        break
    printed += chunk
    if b"ready" in printed and not typed:
        os.write(terminal, b"\x03")
        typed = True
sys.stdout.write(printed.decode())
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
