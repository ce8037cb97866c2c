// Partners gets an offer from a partner for each request. The partner takes 40 ms. ROLE is partners or partner.
//
// FAULT=1 allows two connections to the partner; requests wait for a free one.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

const connections = 2

func offer(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(40 * time.Millisecond)
	_, _ = io.WriteString(w, `{"cents":1700}`)
}

func partners() http.HandlerFunc {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	if os.Getenv("FAULT") != "" {
		transport.MaxConnsPerHost = connections
	}
	client := &http.Client{Transport: transport}
	return func(w http.ResponseWriter, r *http.Request) {
		response, err := client.Get(os.Getenv("PARTNER_URL") + "/offers/" + r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		_, _ = io.Copy(w, response.Body)
	}
}

func main() {
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	if os.Getenv("ROLE") == "partner" {
		http.HandleFunc("GET /offers/{id}", offer)
	} else {
		http.HandleFunc("GET /products/{id}", partners())
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
