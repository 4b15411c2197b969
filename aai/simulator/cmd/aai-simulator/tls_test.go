package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trusting returns a client configuration that trusts the generated CA in a directory.
func trusting(t *testing.T, dir string) *tls.Config {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		t.Fatalf("ca.pem holds no certificate: %s", data)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// reach asks for the health of an A&AI.
func reach(t *testing.T, client *http.Client, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/aai/util/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestGeneratedCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	urls := start(t, 1, "--listen", "127.0.0.1:0", "--control-listen", "", "--tls-generate", dir)
	if status, body := get(t, newClient(t, trusting(t, dir)), urls["aai"]+"/aai/util/echo", "", ""); status != http.StatusOK {
		t.Errorf("status %d: %s", status, body)
	}
	var unknown x509.UnknownAuthorityError
	if err := reach(t, newClient(t, nil), urls["aai"]); !errors.As(err, &unknown) {
		t.Errorf("a client that does not know the CA gets %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, "client-key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	urls := start(t, 1, "--listen", "127.0.0.1:0", "--control-listen", "", "--tls-generate", dir, "--tls-client-ca", filepath.Join(dir, "ca.pem"))
	config := trusting(t, dir)
	// With TLS 1.3 a client can be through before the server has looked at its certificate, and then finds the connection
	// broken as often as it hears why.
	config.MaxVersion = tls.VersionTLS12
	if err := reach(t, newClient(t, config), urls["aai"]); err == nil || !strings.Contains(err.Error(), "remote error: tls: handshake failure") {
		t.Errorf("without a certificate: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	known := config.Clone()
	known.Certificates = []tls.Certificate{pair}
	if status, body := get(t, newClient(t, known), urls["aai"]+"/aai/util/echo", "", ""); status != http.StatusOK {
		t.Errorf("with the certificate: status %d: %s", status, body)
	}
	foreignCert, foreignKey := certificate(t)
	foreign, err := tls.LoadX509KeyPair(foreignCert, foreignKey)
	if err != nil {
		t.Fatal(err)
	}
	stranger := config.Clone()
	stranger.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
	if err := reach(t, newClient(t, stranger), urls["aai"]); err == nil {
		t.Error("a certificate of somebody else is taken")
	}
}

func TestFaultsOfTLS(t *testing.T) {
	for fault, matches := range map[string]func(error) bool{
		"handshake": func(err error) bool { return strings.Contains(err.Error(), "remote error: tls: ") },
		"expired": func(err error) bool {
			var invalid x509.CertificateInvalidError
			return errors.As(err, &invalid) && invalid.Reason == x509.Expired
		},
	} {
		t.Run(fault, func(t *testing.T) {
			dir := t.TempDir()
			urls := start(t, 1, "--listen", "127.0.0.1:0", "--control-listen", "", "--tls-generate", dir, "--tls-fault", fault)
			if err := reach(t, newClient(t, trusting(t, dir)), urls["aai"]); err == nil || !matches(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// dial opens a connection and reports whether it is still there after a request.
func dial(t *testing.T, address string) (net.Conn, error) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /aai/util/echo HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return c, err
	}
	_, err = c.Read(make([]byte, 1000))
	return c, err
}

func TestConnectionLimit(t *testing.T) {
	urls := start(t, 2, "--listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0", "--max-connections", "2")
	address := strings.TrimPrefix(urls["aai"], "http://")
	first, err := dial(t, address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, address); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, address); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a third connection ends with %v, want a reset", err)
	}
	if err := reach(t, newClient(t, nil), urls["control"]); err != nil {
		t.Errorf("the control surface has the limit, too: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil { // the server needs a moment to see that it is closed
		if _, err := dial(t, address); err == nil {
			return
		}
	}
	t.Error("a connection that was closed still counts")
}
