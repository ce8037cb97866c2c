// Server of the bench, and its clients in Go: net/http, a plain socket, database/sql.
//
//	calls server ADDRESS
//	calls http|raw|postgres ADDRESS SERVICE_MS THINK_MS BYTES WORKERS SECONDS
//
// The server waits for as many milliseconds as the query says (`ms`, or `slow` in one of five requests) and responds
// with `bytes` bytes. A client calls for two seconds unmeasured, prints "measuring", and at its end the mean number of
// calls under way by its own clock, their number and mean time.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	_ "github.com/lib/pq"
)

const warmUp = 2 * time.Second

func main() {
	if os.Args[1] == "server" {
		serve(os.Args[2])
		return
	}
	address := os.Args[2]
	number := func(at int) float64 {
		value, err := strconv.ParseFloat(os.Args[at], 64)
		check(err)
		return value
	}
	serviceMs, think, bytes := number(3), number(4), int(number(5))
	workers, length := int(number(6)), time.Duration(number(7)*float64(time.Second))
	makeCall := map[string]func(string, float64, int) func(){
		"http": overHTTP, "raw": overSocket, "postgres": overPostgres,
	}[os.Args[1]]
	call := func() func() { return makeCall(address, serviceMs, bytes) }
	if os.Args[1] != "raw" {
		shared := call()
		call = func() func() { return shared }
	}

	var lock sync.Mutex
	var done sync.WaitGroup
	var busy time.Duration
	calls := 0
	began := time.Now().Add(warmUp)
	end := began.Add(length)
	for worker := range workers {
		done.Go(func() {
			random := rand.New(rand.NewSource(int64(worker)))
			call := call()
			for time.Now().Before(end) {
				sent := time.Now()
				call()
				took := time.Since(sent)
				if sent.After(began) {
					lock.Lock()
					busy, calls = busy+took, calls+1
					lock.Unlock()
				}
				time.Sleep(time.Duration(random.ExpFloat64() * think * float64(time.Millisecond)))
			}
		})
	}
	time.Sleep(warmUp)
	fmt.Println("measuring")
	done.Wait()
	fmt.Printf("{\"outstanding\": %.4f, \"calls\": %d, \"mean_ms\": %.4f}\n",
		busy.Seconds()/time.Since(began).Seconds(), calls, busy.Seconds()/float64(calls)*1e3)
}

func serve(address string) {
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		io.Copy(io.Discard, request.Body)
		query := request.URL.Query()
		wait, _ := strconv.ParseFloat(query.Get("ms"), 64)
		if slow := query.Get("slow"); slow != "" && rand.Intn(5) == 0 {
			wait, _ = strconv.ParseFloat(slow, 64)
		}
		bytes, _ := strconv.Atoi(query.Get("bytes"))
		time.Sleep(time.Duration(wait * float64(time.Millisecond)))
		response.Header().Set("Content-Length", strconv.Itoa(bytes))
		response.Write(make([]byte, bytes))
	})
	check(http.ListenAndServe(address, handler))
}

func path(serviceMs float64, bytes int) string {
	// Times below zero: four of five requests take 5 ms, the others as long as the number says.
	if serviceMs < 0 {
		return fmt.Sprintf("/?ms=5&slow=%g&bytes=%d", -serviceMs, bytes)
	}
	return fmt.Sprintf("/?ms=%g&bytes=%d", serviceMs, bytes)
}

func overHTTP(address string, serviceMs float64, bytes int) func() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	url := "http://" + address + path(serviceMs, bytes)
	return func() {
		response, err := client.Get(url)
		check(err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// One write for the request, one buffer for the response: nothing but the call.
func overSocket(address string, serviceMs float64, bytes int) func() {
	connection, err := net.Dial("tcp", address)
	check(err)
	request := []byte("GET " + path(serviceMs, bytes) + " HTTP/1.1\r\nHost: x\r\n\r\n")
	reader := bufio.NewReaderSize(connection, 1<<16)
	return func() {
		connection.Write(request)
		response, err := http.ReadResponse(reader, nil)
		check(err)
		io.Copy(io.Discard, response.Body)
	}
}

func overPostgres(address string, serviceMs float64, _ int) func() {
	host, port, _ := net.SplitHostPort(address)
	database, err := sql.Open("postgres", fmt.Sprintf("host=%s port=%s user=postgres sslmode=disable", host, port))
	check(err)
	database.SetMaxIdleConns(1000)
	return func() {
		var nothing string
		check(database.QueryRowContext(context.Background(), "SELECT pg_sleep($1)::text", serviceMs/1e3).Scan(&nothing))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
