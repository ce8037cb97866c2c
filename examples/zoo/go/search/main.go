// Search looks for products in six shards. ROLE is search or shards.
//
// FAULT=1 calls the shards one after another.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"zoo/telemetry"
)

const shards = 6

var faulty = os.Getenv("FAULT") != ""

func shard(w http.ResponseWriter, r *http.Request) {
	time.Sleep(12 * time.Millisecond)
	fmt.Fprintf(w, `["product-%s-1","product-%s-2"]`, r.PathValue("id"), r.PathValue("id"))
}

func query(ctx context.Context, id int) []string {
	url := fmt.Sprintf("%s/shards/%d", os.Getenv("SHARDS_URL"), id)
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	response, err := telemetry.Client.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var found []string
	_ = json.NewDecoder(response.Body).Decode(&found)
	return found
}

func search(w http.ResponseWriter, r *http.Request) {
	var results [shards][]string
	var group sync.WaitGroup
	for id := range shards {
		if faulty {
			results[id] = query(r.Context(), id)
		} else {
			group.Go(func() { results[id] = query(r.Context(), id) })
		}
	}
	group.Wait()
	_ = json.NewEncoder(w).Encode(results)
}

func main() {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	if os.Getenv("ROLE") == "shards" {
		routes.HandleFunc("GET /shards/{id}", shard)
	} else {
		routes.HandleFunc("GET /search", search)
	}
	telemetry.Serve(routes)
}
