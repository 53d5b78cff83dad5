"""Echoes messages with grpcio, until standard input ends.

Usage: grpc_server.py [CERTIFICATE KEY]

Prints the port. With a certificate it speaks TLS. /echo/One gives the message back with its SHA-256 in the trailer `sha256`; /echo/Many
takes and gives a stream of messages, one for one.
"""

import hashlib
import sys
from concurrent import futures

import grpc

LARGEST = [(f"grpc.max_{way}_message_length", 16 << 20) for way in ("receive", "send")]


def one(message, context):
    context.set_trailing_metadata((("sha256", hashlib.sha256(message).hexdigest()),))
    return message


def many(messages, context):
    yield from messages


handlers = {
    "One": grpc.unary_unary_rpc_method_handler(one),
    "Many": grpc.stream_stream_rpc_method_handler(many),
}
server = grpc.server(futures.ThreadPoolExecutor(4), options=LARGEST)
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo", handlers)])
if len(sys.argv) > 1:
    certificate, key = (open(path, "rb").read() for path in sys.argv[1:])
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
