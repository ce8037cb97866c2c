// A server and its client in one process, traced by otelhttp.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	ctx := context.Background()
	traces, metrics := exporters(ctx)
	tracing := sdktrace.NewTracerProvider(sdktrace.WithBatcher(traces))
	metering := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics)))
	otel.SetTracerProvider(tracing)
	otel.SetMeterProvider(metering)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	requests()
	must(metering.Shutdown(ctx))
	must(tracing.Shutdown(ctx))
}

func exporters(ctx context.Context) (sdktrace.SpanExporter, metric.Exporter) {
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		traces, err := otlptracegrpc.New(ctx)
		must(err)
		metrics, err := otlpmetricgrpc.New(ctx)
		must(err)
		return traces, metrics
	}
	traces, err := otlptracehttp.New(ctx)
	must(err)
	metrics, err := otlpmetrichttp.New(ctx)
	must(err)
	return traces, metrics
}

func requests() {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello "+r.PathValue("name"))
	})
	routes.HandleFunc("GET /boom", func(w http.ResponseWriter, r *http.Request) {
		span := trace.SpanFromContext(r.Context())
		span.RecordError(errors.New("boom"))
		span.SetStatus(codes.Error, "boom")
		w.WriteHeader(http.StatusInternalServerError)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	server := &http.Server{Handler: otelhttp.NewHandler(routes, "server")}
	go func() { _ = server.Serve(listener) }()
	client := http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	for _, path := range []string{"/hello/world", "/boom"} {
		response, err := client.Get("http://" + listener.Addr().String() + path)
		must(err)
		_, err = io.Copy(io.Discard, response.Body)
		must(err)
		must(response.Body.Close())
	}
	must(server.Shutdown(context.Background()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
