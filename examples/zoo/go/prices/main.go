// Prices keeps three million prices in memory and converts one page of them per request.
//
// FAULT=1 lets the garbage collector run whenever the heap has grown by 1 %.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"zoo/telemetry"
)

const (
	count = 3_000_000
	page  = 500
)

type price struct {
	Product string
	Cents   int
}

var prices = load()

func load() map[int]*price {
	prices := make(map[int]*price, count)
	for id := range count {
		prices[id] = &price{Product: fmt.Sprintf("product-%d", id), Cents: 100 + id%9_900}
	}
	return prices
}

func convert(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(20 * time.Millisecond) // the exchange rate, from elsewhere
	first := rand.IntN(count - page)
	var converted []map[string]any
	for id := first; id < first+page; id++ {
		converted = append(converted, map[string]any{"product": prices[id].Product, "cents": prices[id].Cents * 108 / 100})
	}
	_ = json.NewEncoder(w).Encode(converted)
}

func main() {
	if os.Getenv("FAULT") != "" {
		debug.SetGCPercent(1)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("GET /prices", convert)
	telemetry.Serve(routes)
}
