// Ledger books transfers between accounts, each confirmed by a bank.
//
// FAULT=1 holds the ledger's lock while the bank confirms.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"
)

const accounts = 100

var (
	faulty   = os.Getenv("FAULT") != ""
	mutex    sync.Mutex
	balances [accounts]int
)

// confirm stands for the call to the bank.
func confirm() {
	time.Sleep(20 * time.Millisecond)
}

func book(from, to, cents int) int {
	mutex.Lock()
	defer mutex.Unlock()
	if faulty {
		confirm()
	}
	balances[from] -= cents
	balances[to] += cents
	return balances[to]
}

func transfer(w http.ResponseWriter, _ *http.Request) {
	if !faulty {
		confirm()
	}
	balance := book(rand.IntN(accounts), rand.IntN(accounts), 1+rand.IntN(5_000))
	fmt.Fprintf(w, `{"balance":%d}`, balance)
}

func main() {
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /transfers", transfer)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
