// Travel fetches fares from an airline. The airline is somebody else's: a stub of it listens on port 19555, with a
// fixed delay and without telemetry.
//
// FAULT=1 makes the airline slow.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"zoo/telemetry"
)

const airline = "localhost:19555"

func stub() {
	delay := 4 * time.Millisecond
	if os.Getenv("FAULT") != "" {
		delay = 250 * time.Millisecond
	}
	log.Fatal(http.ListenAndServe(airline, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(delay)
		fmt.Fprint(w, `{"cents":12900}`)
	})))
}

func trip(w http.ResponseWriter, r *http.Request) {
	request, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+airline+"/fares", nil)
	response, err := telemetry.Client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(w, response.Body)
}

func main() {
	go stub()
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("GET /trips/{to}", trip)
	telemetry.Serve(routes)
}
