package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const writers = 8

// load writes until standard input ends, and prints the id of each document whose write was acknowledged; the store may end and
// come back meanwhile. Then every one of them has to be there.
func load(address string) {
	options := policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: 20, RetryDelay: 100 * time.Millisecond, MaxRetryDelay: time.Second}}
	client := must(azcosmos.NewClientWithKey(address, must(azcosmos.NewKeyCredential(key)), &azcosmos.ClientOptions{ClientOptions: options}))
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "load"}, nil))
	items := create(must(client.NewDatabase("load")), "items", 90_000)
	var acknowledged sync.Map
	var isOver atomic.Bool
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for n := 0; !isOver.Load(); n++ {
				document := item{ID: strconv.Itoa(writer) + "-" + strconv.Itoa(n), Owner: owner(n), N: n}
				// A write that the client has given up on may be there or not.
				if _, err := items.UpsertItem(ctx, of(n), text(document), nil); err == nil {
					acknowledged.Store(document.ID, n)
					fmt.Println(document.ID)
				}
			}
		}()
	}
	must(io.Copy(io.Discard, os.Stdin))
	isOver.Store(true)
	writing.Wait()
	kept := map[string]int{}
	for _, document := range ask[item](items, azcosmos.NewPartitionKey(), "SELECT * FROM c", 1_000, nothing) {
		kept[document.ID] = document.N
	}
	acknowledged.Range(func(id, n any) bool {
		found, isThere := kept[id.(string)]
		expect([]any{id, found, isThere}, []any{id, n, true})
		return true
	})
}
