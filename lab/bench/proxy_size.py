"""Memory and wake-ups of the proxy with nothing to do, and with many connections that are idle."""

import resource
import socket
import time
from contextlib import ExitStack

# Descriptors left for everything but the measured connections.
SPARE = 300


def measure(starter, figures, plan):
    with ExitStack() as running:
        begin = running.enter_context
        origin = begin(starter.origin())
        sink = begin(starter.sink())
        proxy = begin(starter.proxy(origin.port, sink.port))
        _idle(figures, plan, proxy)
        nginx = begin(starter.nginx(origin.port))
        haproxy = begin(starter.haproxy(origin.port))
        figures.add("idle-rss nginx", nginx.rss_mib(), "MiB")
        figures.add("idle-rss haproxy", haproxy.rss_mib(), "MiB")
        _many_connections(figures, plan, proxy)


def _idle(figures, plan, proxy):
    # What the start and the look whether it listens have set off is over by then.
    time.sleep(3)
    before = proxy.wake_ups()
    time.sleep(plan.idle_seconds)
    woken = proxy.wake_ups() - before
    figures.add("idle-rss skewtap", proxy.rss_mib(), "MiB")
    figures.add("idle-wake-ups skewtap", woken / plan.idle_seconds, "1/s")


def _many_connections(figures, plan, proxy):
    """All are open; as many as the descriptor limit lets have a connection to the server each
    have had an answer."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    wanted = min(plan.idle_connections, limit - SPARE)
    answered = min(wanted, limit - SPARE - wanted)
    connections = []
    try:
        for number in range(wanted):
            connection = socket.create_connection(("127.0.0.1", proxy.port), 10)
            connections.append(connection)
            if number < answered:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: idle\r\n\r\n")
                if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                    raise RuntimeError("no answer on a connection that was to be idle")
        time.sleep(5)
        figures.add(f"idle-connections-{wanted}-of-which-answered", answered, "connections")
        figures.add(f"idle-connections-{wanted}-rss skewtap", proxy.rss_mib(), "MiB")
    finally:
        for connection in connections:
            connection.close()
