"""Starting, watching and stopping what is measured, and what it is measured with."""

import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Program:
    """A process of this run, with its ports. It is stopped by its id when the `with` block ends."""

    def __init__(self, folder, name, command, port, environment=None):
        self.name, self.port = name, port
        self.log = folder / f"{name}-{port}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                # Ctrl-C reaches this program alone, which then stops the others in order.
                start_new_session=True,
            )
        self.pid = self.process.pid
        try:
            self._wait_for_port()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends it, by force if it does not go within 15 seconds."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(sign)
                try:
                    self.process.wait(15)
                except subprocess.TimeoutExpired:
                    continue
            return

    def cpu_seconds(self):
        """CPU time of all its threads so far, in user and kernel mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_mib(self, peak=False):
        """Resident memory now, or the most there was."""
        return _status_number(f"/proc/{self.pid}", "VmHWM" if peak else "VmRSS") / 1024

    def wake_ups(self):
        """How often any of its threads has gone to sleep so far, and so been woken."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(_status_number(thread, "voluntary_ctxt_switches") for thread in threads)

    def _wait_for_port(self):
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at once: {self.log.read_text()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{self.name} does not listen on port {self.port}")


def _status_number(folder, name):
    for line in Path(folder, "status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"no {name} in {folder}")


# Below the ports that the kernel gives out by itself, so that none is taken by another socket between
# here and the program that it is for.
_ports = iter(range(20000, 30000))


def free_port():
    """A port that nothing listens on, and that no other call gives."""
    for port in _ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port is left")


class Starter:
    """Starts programs with settings that suit a comparison. `folder` takes what they write."""

    def __init__(self, folder, skewtap, bench_load, rotel):
        self.folder = folder
        self.skewtap, self.bench_load, self.rotel = skewtap, bench_load, rotel

    def origin(self):
        """A server that gives small answers as fast as it can."""
        answer = 'location / { return 200 "an answer as small as those of many an API\\n"; }'
        return self._nginx("origin", answer, free_port())

    def nginx(self, upstream):
        """nginx as a proxy: one worker, connections to the server kept, nothing buffered."""
        location = (
            "location / { proxy_pass http://servers; proxy_http_version 1.1; "
            'proxy_set_header Connection ""; proxy_buffering off; '
            "proxy_request_buffering off; }"
        )
        servers = (
            f"upstream servers {{ server 127.0.0.1:{upstream}; keepalive 1024; "
            "keepalive_requests 1000000000; }"
        )
        return self._nginx("nginx", location, free_port(), servers)

    def nginx_http2(self, upstream):
        """The same for clients that speak HTTP/2 without TLS."""
        location = (
            "location / { proxy_pass http://servers; proxy_http_version 1.1; "
            'proxy_set_header Connection ""; proxy_buffering off; }'
        )
        servers = (
            f"upstream servers {{ server 127.0.0.1:{upstream}; keepalive 1024; "
            "keepalive_requests 1000000000; }"
        )
        return self._nginx("nginx-http2", location, free_port(), servers, " http2")

    def haproxy(self, upstream, protocol=""):
        """HAProxy: one thread and, as in skewtap, a connection to the server for each client's."""
        port = free_port()
        config = self.folder / f"haproxy-{port}.cfg"
        config.write_text(
            "global\n  nbthread 1\n  maxconn 4000\n"
            "defaults\n  mode http\n  option http-keep-alive\n  http-reuse never\n"
            "  timeout connect 5s\n  timeout client 600s\n  timeout server 600s\n"
            f"frontend clients\n  bind 127.0.0.1:{port} {protocol}\n  default_backend servers\n"
            f"backend servers\n  server one 127.0.0.1:{upstream}\n"
        )
        return Program(self.folder, "haproxy", ["haproxy", "-db", "-f", config], port)

    def proxy(self, upstream, records_to, *options):
        """skewtap's proxy, with one forwarding thread."""
        port = free_port()
        command = [self.skewtap, "proxy", "--listen", f"127.0.0.1:{port}"]
        command += ["--upstream", f"http://127.0.0.1:{upstream}"]
        command += ["--otlp", f"http://127.0.0.1:{records_to}", *options]
        # The proxy's spans of itself are apart from what it measures.
        own_spans = {"OTEL_TRACES_EXPORTER": "none"}
        return Program(self.folder, "proxy", command, port, own_spans)

    def collector(self, store, *options):
        """skewtap's collector; `port` takes spans over gRPC, `http_port` serves the API."""
        grpc, http_port = free_port(), free_port()
        command = [self.skewtap, "collector", "--otlp-grpc", f"127.0.0.1:{grpc}"]
        command += ["--otlp-http", "127.0.0.1:0", "--http", f"127.0.0.1:{http_port}"]
        command += ["--store", store, *options]
        program = Program(self.folder, "collector", command, grpc)
        program.http_port = http_port
        return program

    def rotel_agent(self):
        """Rotel, which takes spans and keeps nothing."""
        grpc = free_port()
        command = [self.rotel, "start", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"]
        command += ["--otlp-http-endpoint", f"127.0.0.1:{free_port()}"]
        command += ["--exporter", "blackhole"]
        return Program(self.folder, "rotel", command, grpc)

    def sink(self, keep=None):
        """Takes records and keeps nothing, but for the largest request if `keep` names a file."""
        port = free_port()
        command = [self.bench_load, "sink", "--listen", f"127.0.0.1:{port}"]
        command += ["--keep", keep] if keep else []
        return Program(self.folder, "sink", command, port)

    def bodies(self):
        """A server that gives and takes long bodies."""
        port = free_port()
        command = [self.bench_load, "bodies", "--listen", f"127.0.0.1:{port}"]
        return Program(self.folder, "bodies", command, port)

    def _nginx(self, name, location, port, more="", listen=""):
        folder = self.folder / f"{name}-{port}"
        folder.mkdir()
        config = folder / "nginx.conf"
        config.write_text(
            f"pid {folder}/pid; error_log {folder}/error.log; daemon off; master_process off;\n"
            "worker_processes 1; events { worker_connections 19000; }\n"
            "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;\n"
            "client_max_body_size 0;\n"
            + "".join(f"{kind}_temp_path {folder};\n" for kind in TEMPORARY)
            + f"{more}\nserver {{ listen 127.0.0.1:{port}{listen} backlog=4096; {location} }} }}\n"
        )
        return Program(self.folder, name, ["nginx", "-p", folder, "-c", config], port)


TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]


def get(port, path):
    """The status and the body that a GET on loopback brings."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def metric(port, name):
    """The sum of all series of a metric that a collector serves."""
    lines = get(port, "/metrics")[1].decode().splitlines()
    values = [line.rpartition(" ")[2] for line in lines if _is_series(line, name)]
    return sum(float(value) for value in values)


def _is_series(line, name):
    return line.startswith(name) and line[len(name) : len(name) + 1] in ("{", " ")
