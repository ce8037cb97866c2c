// Sessions gives each visitor a session with a scratch buffer.
//
// FAULT=1 never removes a session; otherwise the oldest goes when there are 100.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
)

const (
	sessionsMax = 100
	bufferBytes = 64 << 10
)

var (
	faulty   = os.Getenv("FAULT") != ""
	mutex    sync.Mutex
	sessions = map[int][]byte{}
	newest   int
)

func open(w http.ResponseWriter, _ *http.Request) {
	buffer := make([]byte, bufferBytes)
	for at := range buffer {
		buffer[at] = byte(at)
	}
	mutex.Lock()
	defer mutex.Unlock()
	newest++
	sessions[newest] = buffer
	if !faulty {
		delete(sessions, newest-sessionsMax)
	}
	fmt.Fprintf(w, `{"session":%d}`, newest)
}

func main() {
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /sessions", open)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
