// Feed serves a news feed that takes 25 ms to put together.
//
// FAULT=1 allows two connections at a time; all others wait to be accepted.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/netutil"
)

const connections = 2

func feed(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(25 * time.Millisecond)
	fmt.Fprint(w, `["first","second","third"]`)
}

func main() {
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /feed", feed)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	if os.Getenv("FAULT") != "" {
		listener = netutil.LimitListener(listener, connections)
	}
	log.Fatal(http.Serve(listener, nil))
}
