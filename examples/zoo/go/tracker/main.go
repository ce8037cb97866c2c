// Tracker adds up the positions that four depots know of a parcel. It reaches them over TLS. ROLE is tracker or depot.
//
// FAULT=1 closes each connection to a depot after its response, so that every call opens one.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"time"
)

const depots = 4

// certificate is one that nobody signed.
func certificate() (tls.Certificate, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

func depot(address string) error {
	own, err := certificate()
	if err != nil {
		return err
	}
	http.HandleFunc("GET /positions/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, 1) })
	server := &http.Server{Addr: address, TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}}
	return server.ListenAndServeTLS("", "")
}

func tracker(address string) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConnsPerHost: 64,
		DisableKeepAlives:   os.Getenv("FAULT") != "",
	}}
	url := "https://127.0.0.1:" + os.Getenv("DEPOT_PORT") + "/positions/"
	http.HandleFunc("GET /parcels/{id}", func(w http.ResponseWriter, r *http.Request) {
		for range depots {
			response, err := client.Get(url + r.PathValue("id"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			_, _ = io.Copy(w, response.Body)
			_ = response.Body.Close()
		}
	})
	return http.ListenAndServe(address, nil)
}

func main() {
	address := "127.0.0.1:" + os.Getenv("PORT")
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	if os.Getenv("ROLE") == "depot" {
		log.Fatal(depot(address))
	}
	log.Fatal(tracker(address))
}
