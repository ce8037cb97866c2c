// Atlas looks up tiles in a file of 96 MiB that it maps into memory.
//
// FAULT=1 keeps 100 MiB of drawn tiles as well. With a memory limit of 128 MiB the kernel then has little room for pages of
// the file: it drops those that are needed next and reads them from the disk again.
package main

import (
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

const (
	fileBytes  = 96 << 20
	drawnBytes = 100 << 20
	pageBytes  = 4 << 10
	tilesEach  = 300
)

var (
	tiles []byte
	drawn []byte
)

func write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	part := make([]byte, 1<<20)
	for at := 0; at < fileBytes; at += len(part) {
		for i := range part {
			part[i] = byte(at>>20 + i>>12)
		}
		if _, err := file.Write(part); err != nil {
			return err
		}
	}
	return file.Sync()
}

func lookUp(w http.ResponseWriter, _ *http.Request) {
	sum := 0
	for range tilesEach {
		sum += int(tiles[rand.Intn(fileBytes/pageBytes)*pageBytes])
	}
	fmt.Fprintf(w, `{"height":%d}`, sum)
}

func main() {
	path := filepath.Join(os.Getenv("DIR"), "tiles")
	if err := write(path); err != nil {
		log.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	if tiles, err = syscall.Mmap(int(file.Fd()), 0, fileBytes, syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		log.Fatal(err)
	}
	if err := syscall.Madvise(tiles, syscall.MADV_RANDOM); err != nil {
		log.Fatal(err)
	}
	if os.Getenv("FAULT") != "" {
		drawn = make([]byte, drawnBytes)
		for at := 0; at < len(drawn); at += pageBytes {
			drawn[at] = 1
		}
	}
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /heights", lookUp)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
