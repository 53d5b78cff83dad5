"""Sends a client's span and, under it, a server's span, with a metric and a log beside them.

The SDK is as it comes, and set up by the variables that OpenTelemetry defines for it. Prints the
ids of the trace and of the client's span.
"""

import logging
import os
import sys

from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter


def main() -> int:
    traces = TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    logs = LoggerProvider()
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    logger = logging.getLogger("lab")
    logger.propagate = False
    logger.addHandler(LoggingHandler(logger_provider=logs))

    tracer = traces.get_tracer("lab")
    with tracer.start_as_current_span("GET", kind=trace.SpanKind.CLIENT) as client:
        with tracer.start_as_current_span("GET /cart", kind=trace.SpanKind.SERVER) as server:
            server.set_attribute("http.route", "/cart")
            meters.get_meter("lab").create_counter("carts").add(1)
            logger.warning("a cart was asked for")

    sent = [provider.force_flush() for provider in (traces, meters, logs)]
    for provider in (traces, meters, logs):
        provider.shutdown()
    context = client.get_span_context()
    print(f"{context.trace_id:032x} {context.span_id:016x}")
    return 0 if all(sent) else 1


if __name__ == "__main__":
    sys.exit(main())
