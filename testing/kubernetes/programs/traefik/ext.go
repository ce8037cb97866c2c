// Package ext has the additions that Traefik's own repository has none of, and no module proxy serves.
package ext

// HTTP adds nothing.
type HTTP struct{}

// Router adds nothing.
type Router struct{}
