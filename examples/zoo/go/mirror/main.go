// Mirror fetches packages from a store whose name it looks up for each request. ROLE is mirror, store or names, a DNS
// server that knows one address. DNS servers are asked at port 53, so names listens there, at an address of its own.
//
// FAULT=1 makes the DNS server slow.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/httptrace/otelhttptrace"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/net/dns/dnsmessage"

	"zoo/telemetry"
)

const nameServer = "127.0.0.155:53"

// names responds to every question with 127.0.0.1.
func names() {
	socket, err := net.ListenPacket("udp", nameServer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", nameServer)
	buffer := make([]byte, 512)
	for {
		size, client, err := socket.ReadFrom(buffer)
		var message dnsmessage.Message
		if err != nil || message.Unpack(buffer[:size]) != nil {
			continue
		}
		go respond(socket, client, message)
	}
}

func respond(socket net.PacketConn, client net.Addr, message dnsmessage.Message) {
	if os.Getenv("FAULT") != "" {
		time.Sleep(120 * time.Millisecond)
	}
	message.Response = true
	message.Additionals = nil
	if question := message.Questions[0]; question.Type == dnsmessage.TypeA {
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 1}
		body := &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}
		message.Answers = []dnsmessage.Resource{{Header: header, Body: body}}
	}
	if packed, err := message.Pack(); err == nil {
		_, _ = socket.WriteTo(packed, client)
	}
}

func client() *http.Client {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", nameServer)
	}}
	transport := &http.Transport{DialContext: (&net.Dialer{Resolver: resolver}).DialContext, DisableKeepAlives: true}
	trace := func(ctx context.Context) *httptrace.ClientTrace { return otelhttptrace.NewClientTrace(ctx) }
	return &http.Client{Transport: otelhttp.NewTransport(transport, otelhttp.WithClientTrace(trace))}
}

func main() {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	switch os.Getenv("ROLE") {
	case "names":
		names()
	case "store":
		routes.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "package") })
	default:
		client := client()
		routes.HandleFunc("GET /packages/{name}", func(w http.ResponseWriter, r *http.Request) {
			url := "http://store.internal.:" + os.Getenv("STORE_PORT") + "/files/" + r.PathValue("name")
			request, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
			response, err := client.Do(request)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer response.Body.Close()
			_, _ = io.Copy(w, response.Body)
		})
	}
	telemetry.Serve(routes)
}
