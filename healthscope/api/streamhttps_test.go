package api

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// newCertificate returns a certificate for localhost, and a pool with the certificate as the only trusted one.
func newCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{DNSNames: []string{"localhost"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, trusted
}

// listenHTTPS is like listen, over HTTPS and HTTP/2.
func listenHTTPS(t *testing.T, o Options, target string) listening {
	t.Helper()
	certificate, trusted := newCertificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	listener, stop := startPiped(t, &Server{Address: "pipe", Handler: NewHandler(o), TLS: config})
	client := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13},
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil },
	}
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost"+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, response.Body)
	if response.ProtoMajor != 2 || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != typeStream {
		t.Fatalf("%s, status %d, header %v", response.Proto, response.StatusCode, response.Header)
	}
	return listening{bufio.NewReader(response.Body), stop}
}

// TestStreamLivesAndEndsOverHTTPS asserts that a quiet stream stays open over HTTP/2, where an expired deadline ends a stream even when nothing is written.
func TestStreamLivesAndEndsOverHTTPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(manyScopes())
		livesAndEnds(t, scopes, listenHTTPS(t, Options{Scopes: scopes}, "/scopes?watch=true"))
	})
}
