// Catalogue lists the newest products with their suppliers, from PostgreSQL.
//
// FAULT=1 queries the supplier of each product separately.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/XSAM/otelsql"
	_ "github.com/lib/pq"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"zoo/telemetry"
)

const (
	joined = "SELECT p.name, s.name FROM products p JOIN suppliers s ON s.id = p.supplier ORDER BY p.id DESC LIMIT $1"
	page   = "SELECT name, supplier FROM products ORDER BY id DESC LIMIT $1"
	one    = "SELECT name FROM suppliers WHERE id = $1"
)

type product struct{ Name, Supplier string }

var (
	faulty = os.Getenv("FAULT") != ""
	db     *sql.DB
)

func products(ctx context.Context) ([]product, error) {
	query := joined
	if faulty {
		query = page
	}
	rows, err := db.QueryContext(ctx, query, 20)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []product
	for rows.Next() {
		var next product
		if err := rows.Scan(&next.Name, &next.Supplier); err != nil {
			return nil, err
		}
		found = append(found, next)
	}
	if !faulty {
		return found, rows.Err()
	}
	for at := range found {
		if err := db.QueryRowContext(ctx, one, found[at].Supplier).Scan(&found[at].Supplier); err != nil {
			return nil, err
		}
	}
	return found, rows.Err()
}

func list(w http.ResponseWriter, r *http.Request) {
	found, err := products(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(found)
}

func main() {
	var err error
	db, err = otelsql.Open("postgres", os.Getenv("DATABASE_URL")+"?sslmode=disable",
		otelsql.WithAttributes(semconv.DBSystemNamePostgreSQL))
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("GET /products", list)
	telemetry.Serve(routes)
}
