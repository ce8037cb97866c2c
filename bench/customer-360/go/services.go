package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Name is a row of the table and what the service name returns.
type Name struct {
	PersonID int    `json:"personId"`
	First    string `json:"first"`
	Middle   string `json:"middle"`
	Last     string `json:"last"`
}

// Person is what the service person returns.
type Person struct {
	PersonID int  `json:"personId"`
	Name     Name `json:"name"`
}

// CustomerName is a name as the service customer reads and writes it. As in the original, it takes the number from a
// field that nobody sends, so that it is always 0.
type CustomerName struct {
	ID     int    `json:"id"`
	First  string `json:"first"`
	Middle string `json:"middle"`
	Last   string `json:"last"`
}

// CustomerPerson is a person as the service customer reads and writes it.
type CustomerPerson struct {
	PersonID int          `json:"personId"`
	Name     CustomerName `json:"name"`
}

// Customer is what the service customer returns.
type Customer struct {
	CustomerID string         `json:"customerId"`
	Person     CustomerPerson `json:"person"`
}

func name(ctx context.Context, mux *http.ServeMux, o options) (func(), error) {
	pool, err := pgxpool.New(ctx, o.database)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /api/name", respond(func(ctx context.Context) ([]Name, error) {
		rows, err := pool.Query(ctx, "SELECT personid, first, middle, last FROM name") // prepared once per connection
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[Name])
	}))
	return pool.Close, nil
}

func person(_ context.Context, mux *http.ServeMux, o options) (func(), error) {
	next, err := newUpstream(o.upstream)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /api/person", respond(func(ctx context.Context) ([]Person, error) {
		var names []Name
		if err := next.get(ctx, "/api/name", &names); err != nil {
			return nil, err
		}
		people := make([]Person, len(names))
		for i, name := range names {
			people[i] = Person{PersonID: name.PersonID, Name: name}
		}
		return people, nil
	}))
	return next.client.CloseIdleConnections, nil
}

func customer(_ context.Context, mux *http.ServeMux, o options) (func(), error) {
	next, err := newUpstream(o.upstream)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /api/customer", respond(func(ctx context.Context) ([]Customer, error) {
		var people []CustomerPerson
		if err := next.get(ctx, "/api/person", &people); err != nil {
			return nil, err
		}
		customers := make([]Customer, len(people))
		for i, person := range people {
			customers[i] = Customer{CustomerID: fmt.Sprintf("%d-1", person.PersonID), Person: person}
		}
		return customers, nil
	}))
	return next.client.CloseIdleConnections, nil
}
