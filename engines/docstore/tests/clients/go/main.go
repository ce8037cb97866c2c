// Microsoft's client for Go against the store whose address is the first argument, every response checked; after the argument
// "load", under load.
//
// The second argument is the certificate that it trusts. The client itself merges no results of several partitions: what it
// gets of a query across them is what the store gives.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	key   = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
	count = 120
)

var ctx = context.Background()

type item struct {
	ID    string   `json:"id"`
	Owner string   `json:"owner"`
	N     int      `json:"n"`
	Group string   `json:"group"`
	Tags  []string `json:"tags"`
}

func numbered(n int) item {
	tags := []string{"x", "x"}[:n%3]
	return item{strconv.Itoa(n), owner(n), n, string("abc"[n%3]), tags}
}

func owner(n int) string { return fmt.Sprintf("o%d", n%20) }

func of(n int) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(owner(n)) }

func text(value any) []byte { return must(json.Marshal(value)) }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %v, expected %v", found, expected))
	}
}

func refused(status int, err error) {
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status {
		panic(fmt.Sprintf("found %v, expected a refusal with status %d", err, status))
	}
}

// refusals counts responses with status 429.
type refusals struct{ count int }

func (r *refusals) Do(request *policy.Request) (*http.Response, error) {
	response, err := request.Next()
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		r.count++
	}
	return response, err
}

func client(address, certificate string, seen *refusals) *azcosmos.Client {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must(os.ReadFile(certificate))) {
		panic("no certificate")
	}
	transport := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	options := policy.ClientOptions{Transport: transport, PerRetryPolicies: []policy.Policy{seen}}
	options.Retry.MaxRetries = 9
	return must(azcosmos.NewClientWithKey(address, must(azcosmos.NewKeyCredential(key)), &azcosmos.ClientOptions{ClientOptions: options}))
}

func create(database *azcosmos.DatabaseClient, id string, throughput int32) *azcosmos.ContainerClient {
	provisioned := azcosmos.NewManualThroughputProperties(throughput)
	properties := azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/owner"}}}
	must(database.CreateContainer(ctx, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &provisioned}))
	return must(database.NewContainer(id))
}

func fill(items *azcosmos.ContainerClient) {
	for n := range count {
		must(items.CreateItem(ctx, of(n), text(numbered(n)), nil))
	}
}

func documents(items *azcosmos.ContainerClient) {
	_, err := items.CreateItem(ctx, of(1), text(numbered(1)), nil)
	refused(http.StatusConflict, err)
	_, err = items.ReadItem(ctx, of(2), "1", nil)
	refused(http.StatusNotFound, err)
	var read item
	check(json.Unmarshal(must(items.ReadItem(ctx, of(1), "1", nil)).Value, &read))
	expect(read, numbered(1))

	fresh := map[string]any{"id": "new", "owner": owner(1)}
	expect(must(items.UpsertItem(ctx, of(1), text(fresh), nil)).RawResponse.StatusCode, http.StatusCreated)
	fresh["n"] = 7
	expect(must(items.UpsertItem(ctx, of(1), text(fresh), nil)).RawResponse.StatusCode, http.StatusOK)
	patch := azcosmos.PatchOperations{}
	patch.AppendIncrement("/n", 5)
	patch.AppendAdd("/m", 1)
	patched := must(items.PatchItem(ctx, of(1), "new", patch, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}))
	var both struct{ N, M int }
	check(json.Unmarshal(patched.Value, &both))
	expect(both, struct{ N, M int }{12, 1})
	unmet := azcosmos.PatchOperations{}
	unmet.SetCondition("from c where c.n = 1")
	unmet.AppendSet("/n", 0)
	_, err = items.PatchItem(ctx, of(1), "new", unmet, nil)
	refused(http.StatusPreconditionFailed, err)
	must(items.DeleteItem(ctx, of(1), "new", nil))
	_, err = items.ReadItem(ctx, of(1), "new", nil)
	refused(http.StatusNotFound, err)
}

func aChangeThatSomebodyElseHasOvertaken(items *azcosmos.ContainerClient) {
	read := must(items.ReadItem(ctx, of(2), "2", nil))
	must(items.ReplaceItem(ctx, of(2), "2", read.Value, nil))
	_, err := items.ReplaceItem(ctx, of(2), "2", read.Value, &azcosmos.ItemOptions{IfMatchEtag: &read.ETag})
	refused(http.StatusPreconditionFailed, err)
}

func batches(items *azcosmos.ContainerClient) {
	fresh := text(map[string]any{"id": "b", "owner": owner(1)})
	statuses := func(batch azcosmos.TransactionalBatch) (found []int32) {
		for _, result := range must(items.ExecuteTransactionalBatch(ctx, batch, nil)).OperationResults {
			found = append(found, result.StatusCode)
		}
		return found
	}
	batch := items.NewTransactionalBatch(of(1))
	batch.CreateItem(fresh, nil)
	batch.ReadItem("1", nil)
	batch.DeleteItem("b", nil)
	expect(statuses(batch), []int32{201, 200, 204})
	failing := items.NewTransactionalBatch(of(1))
	failing.CreateItem(fresh, nil)
	failing.CreateItem(text(numbered(1)), nil)
	expect(statuses(failing), []int32{424, 409})
	_, err := items.ReadItem(ctx, of(1), "b", nil)
	refused(http.StatusNotFound, err)
}

// ask gives the results of a query in pages of `size`, each by a query of its own that continues the one before.
func ask[T any](items *azcosmos.ContainerClient, partition azcosmos.PartitionKey, sql string, size int32, between func(page int)) (found []T) {
	options := azcosmos.QueryOptions{PageSizeHint: size, QueryParameters: []azcosmos.QueryParameter{{Name: "@least", Value: 50}}}
	for page := 0; ; page++ {
		response := must(items.NewQueryItemsPager(sql, partition, &options).NextPage(ctx))
		for _, result := range response.Items {
			var value T
			check(json.Unmarshal(result, &value))
			found = append(found, value)
		}
		if response.ContinuationToken == nil {
			return found
		}
		options.ContinuationToken = response.ContinuationToken
		between(page)
	}
}

func nothing(int) {}

func sorted(numbers []int) []int {
	sort.Ints(numbers)
	return numbers
}

func everything() (numbers []int) {
	for n := range count {
		numbers = append(numbers, n)
	}
	return numbers
}

func queries(items *azcosmos.ContainerClient) {
	one := func(sql string) []int { return ask[int](items, of(3), sql, 2, nothing) }
	expect(sorted(one("SELECT VALUE c.n FROM c")), []int{3, 23, 43, 63, 83, 103})
	expect(one("SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC"), []int{103, 83, 63})
	expect(one("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n"), []int{3, 23})
	expect(one("SELECT VALUE COUNT(1) FROM c"), []int{6})
	type group struct{ G, N any }
	groups := ask[group](items, of(3), "SELECT c['group'] AS G, COUNT(1) AS N FROM c GROUP BY c['group']", 10, nothing)
	sort.Slice(groups, func(i, j int) bool { return groups[i].G.(string) < groups[j].G.(string) })
	expect(groups, []group{{"a", 2.0}, {"b", 2.0}, {"c", 2.0}})

	across := azcosmos.NewPartitionKey()
	expect(sorted(ask[int](items, across, "SELECT VALUE c.n FROM c", 7, nothing)), everything())
	expect(len(ask[any](items, across, "SELECT c.id FROM c WHERE c.owner IN ('o1', 'o2', 'o9')", 5, nothing)), 18)
	expect(ask[int](items, across, "SELECT VALUE c.n FROM c WHERE c.owner = 'o3' ORDER BY c.n DESC", 4, nothing), []int{103, 83, 63, 43, 23, 3})
	_, err := items.NewQueryItemsPager("SELECT VALUE c.n FROM c ORDER BY c.n", across, nil).NextPage(ctx)
	refused(http.StatusBadRequest, err)
}

// raise splits the container's one partition after the fourth page.
func raise(items *azcosmos.ContainerClient) func(page int) {
	return func(page int) {
		if page == 3 {
			must(items.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(40_000), nil))
		}
	}
}

func aSplitInTheMiddleOfASortedQuery(database *azcosmos.DatabaseClient) {
	items := create(database, "sorted", 10_000)
	fill(items)
	expect(ask[int](items, azcosmos.NewPartitionKey(), "SELECT VALUE c.n FROM c ORDER BY c.n", 10, raise(items)), everything())
}

func aSplitInTheMiddleOfAQuery(database *azcosmos.DatabaseClient) {
	items := create(database, "split", 10_000)
	fill(items)
	expect(sorted(ask[int](items, azcosmos.NewPartitionKey(), "SELECT VALUE c.n FROM c", 10, raise(items))), everything())
	provisioned, _ := must(items.ReadThroughput(ctx, nil)).ThroughputProperties.ManualThroughput()
	expect(provisioned, int32(40_000))
	queries(items)
}

func aThrottledClientRetries(database *azcosmos.DatabaseClient, seen *refusals) {
	items, before := create(database, "throttled", 400), seen.count
	for n := range 6 {
		// A write of this size takes more than the 400 request units of a second.
		large := numbered(n)
		large.Tags = []string{strings.Repeat("x", 70_000)}
		must(items.UpsertItem(ctx, of(n), text(large), nil))
	}
	if seen.count == before {
		panic("6 large writes went through without a 429")
	}
	must(items.ReadItem(ctx, of(5), "5", nil))
}

func main() {
	if os.Args[1] == "load" {
		load(os.Args[2])
		return
	}
	seen := &refusals{}
	client := client(os.Args[1], os.Args[2], seen)
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "go"}, nil))
	database := must(client.NewDatabase("go"))
	items := create(database, "items", 90_000)
	fill(items)
	documents(items)
	aChangeThatSomebodyElseHasOvertaken(items)
	batches(items)
	queries(items)
	aSplitInTheMiddleOfAQuery(database)
	aSplitInTheMiddleOfASortedQuery(database)
	aThrottledClientRetries(database, seen)
	must(database.Delete(ctx, nil))
}
