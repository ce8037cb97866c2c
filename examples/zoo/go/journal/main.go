// Journal appends events to a file in the folder DIR.
//
// FAULT=1 syncs the file to disk after each event; otherwise it is synced once a second.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

var (
	faulty = os.Getenv("FAULT") != ""
	mutex  sync.Mutex
	file   *os.File
)

func record(event []byte) error {
	mutex.Lock()
	defer mutex.Unlock()
	if _, err := file.Write(append(event, '\n')); err != nil {
		return err
	}
	if faulty {
		return file.Sync()
	}
	return nil
}

func post(w http.ResponseWriter, r *http.Request) {
	event, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = record(event)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func main() {
	var err error
	path := filepath.Join(os.Getenv("DIR"), "journal.log")
	if file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		log.Fatal(err)
	}
	go func() {
		for range time.Tick(time.Second) {
			_ = file.Sync()
		}
	}()
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /events", post)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
