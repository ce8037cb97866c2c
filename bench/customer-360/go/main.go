// Command customer-360 is the chain customer -> person -> name -> PostgreSQL as it is usually written with net/http and
// pgx: a peer to measure against. One binary, one service per process. It does no tracing and writes no access log.
//
//	customer-360 name     -port 7003 -database postgres://postgres@127.0.0.1:5432/postgres
//	customer-360 person   -port 7002 -upstream http://127.0.0.1:7003
//	customer-360 customer -port 7001 -upstream http://127.0.0.1:7002
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// options are the flags of every service; each reads those it needs.
type options struct {
	port     int
	upstream string
	database string
}

// services maps a service's name to what adds its routes. The function returned lets go of what the service holds.
var services = map[string]func(context.Context, *http.ServeMux, options) (func(), error){
	"customer": customer,
	"person":   person,
	"name":     name,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) == 0 || services[args[0]] == nil {
		return errors.New("expected a service: customer, person or name")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.IntVar(&o.port, "port", 0, "port on the loopback interface")
	flags.StringVar(&o.upstream, "upstream", "", "base URL of the next service")
	flags.StringVar(&o.database, "database", "", "URL of PostgreSQL, with pool_max_conns where wanted")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", respond(func(context.Context) (map[string]string, error) {
		return map[string]string{"status": "up"}, nil
	}))
	release, err := services[args[0]](ctx, mux, o)
	if err != nil {
		return err
	}
	defer release()
	return serve(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)), mux)
}

// serve handles requests until ctx is done, then lets the requests under way finish.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return server.Shutdown(last)
	}
}
