"""Gives and takes files with Python's own http.server, until standard input ends.

Usage: http_server.py FOLDER [CERTIFICATE KEY]

Prints the port. GET /files/NAME gives FOLDER/files/NAME with its length, GET /chunked/NAME the same
in chunks; PUT /up/NAME takes FOLDER/up/NAME. With a certificate it speaks TLS.
"""

import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder, *identity = sys.argv[1:]
PIECE = 16_384


class Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind, name = self.path.strip("/").split("/")
        with open(os.path.join(folder, "files", name), "rb") as file:
            body = file.read()
        self.send_response(200)
        if kind == "files":
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for start in range(0, len(body), PIECE):
            piece = body[start : start + PIECE]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def do_PUT(self):
        body = b"".join(self.pieces())
        with open(os.path.join(folder, self.path.strip("/")), "wb") as file:
            file.write(body)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def pieces(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
if identity:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*identity)
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
