package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"
)

// connectionsKept is above the number of requests under way, so that no connection is closed and opened again.
// (net/http keeps 2 for each host unless told.)
const connectionsKept = 256

// upstream is the next service of the chain.
type upstream struct {
	client *http.Client
	base   string
}

func newUpstream(base string) (*upstream, error) {
	if base == "" {
		return nil, errors.New("-upstream is missing")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConns = connectionsKept
	transport.MaxIdleConnsPerHost = connectionsKept
	return &upstream{&http.Client{Transport: transport, Timeout: 10 * time.Second}, base}, nil
}

// get decodes the response to GET path into value.
func (u *upstream) get(ctx context.Context, path string, value any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.base+path, nil)
	if err != nil {
		return err
	}
	response, err := u.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", request.URL, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(value); err != nil {
		return fmt.Errorf("GET %s: %w", request.URL, err)
	}
	_, err = io.Copy(io.Discard, response.Body) // read to its end, or the connection is not used again
	return err
}

// respond writes what make returns as JSON, or 502 when it failed.
func respond[T any](make func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := make(r.Context())
		if err != nil {
			log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
			http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
			return
		}
		body, err := json.Marshal(value)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}
}
