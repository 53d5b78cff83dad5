"""Gets a URL with requests within a client span of the OpenTelemetry SDK, which exports it as the
environment says.

Usage: traced_requests.py URL
"""

import sys

import requests
from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("traced-requests")
with tracer.start_as_current_span("GET", kind=trace.SpanKind.CLIENT):
    headers = {}
    propagate.inject(headers)
    print(requests.get(sys.argv[1], headers=headers).text, end="")
provider.shutdown()
