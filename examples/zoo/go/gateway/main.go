// Gateway adds the credit rating of a customer to an offer. ROLE is gateway or rating.
//
// The rating service sends no telemetry. FAULT=1 makes it slow.
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

func rate(w http.ResponseWriter, _ *http.Request) {
	wait := 4 * time.Millisecond
	if os.Getenv("FAULT") != "" {
		wait = 180 * time.Millisecond
	}
	time.Sleep(wait)
	fmt.Fprint(w, "AA")
}

func offer(w http.ResponseWriter, r *http.Request) {
	request, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, os.Getenv("RATING_URL")+"/rating", nil)
	response, err := telemetry.Client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	rating, _ := io.ReadAll(response.Body)
	fmt.Fprintf(w, `{"rating":%q,"rate":3.9}`, rating)
}

func main() {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	if os.Getenv("ROLE") == "rating" {
		routes.HandleFunc("GET /rating", rate)
		log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), routes))
	}
	routes.HandleFunc("GET /offers/{customer}", offer)
	telemetry.Serve(routes)
}
