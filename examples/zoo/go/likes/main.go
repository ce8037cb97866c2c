// Likes counts likes in PostgreSQL and tells the author of each.
//
// FAULT=1 tells the author within the transaction that has changed the counter of all likes.
package main

import (
	"database/sql"
	"log"
	"net/http"
	"os"
	"time"

	_ "github.com/lib/pq"
)

const (
	ofPost = "UPDATE posts SET likes = likes + 1 WHERE id = $1"
	ofAll  = "UPDATE counters SET n = n + 1 WHERE name = $1"
)

var (
	faulty = os.Getenv("FAULT") != ""
	db     *sql.DB
)

// notify stands for the call to a service that sends messages.
func notify() {
	time.Sleep(10 * time.Millisecond)
}

func like(post string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(ofPost, post); err != nil {
		return err
	}
	if faulty {
		if _, err := tx.Exec(ofAll, "likes"); err != nil {
			return err
		}
		notify()
	}
	return tx.Commit()
}

func main() {
	var err error
	db, err = sql.Open("postgres", os.Getenv("DATABASE_URL")+"?sslmode=disable")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /posts/{id}/likes", func(w http.ResponseWriter, r *http.Request) {
		if err := like(r.PathValue("id")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if !faulty {
			notify()
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
