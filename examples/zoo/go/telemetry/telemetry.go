// Package telemetry sends the traces and metrics of a service over OTLP.
package telemetry

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Client is an HTTP client with a span for each call.
var Client = &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}

// Serve listens on PORT with a span for each request, until SIGTERM.
func Serve(routes http.Handler) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	traces, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	metrics, err := otlpmetrichttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	tracing := trace.NewTracerProvider(trace.WithBatcher(traces))
	otel.SetTracerProvider(tracing)
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics))))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	if err := runtime.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), otelhttp.NewHandler(routes, "server")))
	}()
	<-ctx.Done()
	_ = tracing.Shutdown(context.Background())
}
