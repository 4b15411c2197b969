package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

const seed = `[{"uri":"/network/generic-vnfs/generic-vnf/vnf-1","body":{"vnf-type":"cnf"}}]`

var freePorts = []string{"--listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0"}

// start runs the command on free ports until the test ends, and returns the URLs that it prints, by name.
func start(t *testing.T, listeners int, args ...string) map[string]string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, slices.Concat(freePorts, args), in, io.Discard)
		ended <- errors.Join(err, in.Close())
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run ended with %v", err)
		}
	})
	urls := map[string]string{}
	lines := bufio.NewScanner(out)
	for len(urls) < listeners && lines.Scan() {
		name, url, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			t.Fatalf("cannot parse line %q", lines.Text())
		}
		urls[name] = url
	}
	if len(urls) != listeners {
		t.Fatalf("announced %v, want %d listeners; ended with %v", urls, listeners, <-ended)
	}
	return urls
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// get sends one request with the headers A&AI wants, and returns status and body.
func get(t *testing.T, client *http.Client, url, user, password string) (int, string) {
	t.Helper()
	status, body, err := tryGet(t, client, url, user, password)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

func tryGet(t *testing.T, client *http.Client, url, user, password string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("X-FromAppId", "test")
	r.Header.Set("X-TransactionId", "1")
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), errors.Join(err, response.Body.Close())
}

// newClient returns a client whose connections end with the test.
func newClient(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func TestServesSeedWithAuthenticationAndStops(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("served", func(t *testing.T) {
		urls := start(t, 2, "--strict",
			"--seed", write(t, "seed.json", seed), "--user", "AAI", "--password-file", write(t, "password", "secret\n"))
		client := newClient(t, nil)
		node := urls["aai"] + "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1"
		if status, body := get(t, client, node, "AAI", "secret"); status != 200 || !strings.Contains(body, `"vnf-type":"cnf"`) {
			t.Errorf("seeded VNF: status %d, %s", status, body)
		}
		if status, _ := get(t, client, node, "AAI", "wrong"); status != 403 {
			t.Errorf("wrong password: status %d, want 403", status)
		}
		_, requests := get(t, client, urls["control"]+"/__sim/requests", "", "")
		if n := strings.Count(requests, `"sequence"`); n != 2 || strings.Contains(requests, "Basic ") {
			t.Errorf("journal has %d requests, want 2 without credentials: %s", n, requests)
		}
		_, violations := get(t, client, urls["control"]+"/__sim/violations", "", "")
		if violations != "[]\n" {
			t.Errorf("violations: %s", violations)
		}
	})
}

func TestFlagsReachTheSimulator(t *testing.T) {
	urls := start(t, 2, "--versions", "v24,v30", "--reject")
	client := newClient(t, nil)
	if status, body := get(t, client, urls["aai"]+"/aai/v24/network/generic-vnfs", "", ""); status != http.StatusOK {
		t.Errorf("--versions: status %d: %s", status, body)
	}
	if status, body := get(t, client, urls["aai"]+"/aai/v32/network/generic-vnfs", "", ""); status != http.StatusBadRequest || !strings.Contains(body, "SVC3016") {
		t.Errorf("--versions: status %d: %s", status, body)
	}
	if status, body := get(t, client, urls["aai"]+"/aai/v30/network/generic-vnfs", "", ""); status != http.StatusBadRequest || !strings.Contains(body, "reused-transaction-id") {
		t.Errorf("--reject: status %d: %s", status, body)
	}
	urls = start(t, 2, "--seed", "none")
	if _, state := get(t, client, urls["control"]+"/__sim/state", "", ""); state != "[]\n" {
		t.Errorf("--seed none: the inventory has %s", state)
	}
}

func TestInvalidFlagsAreReported(t *testing.T) {
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close() //nolint:errcheck // the test is over
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":          {[]string{"--nope"}, "nope"},
		"argument":              {[]string{"x"}, `unexpected argument "x"`},
		"user alone":            {[]string{"--user", "u"}, "--password-file"},
		"key alone":             {[]string{"--tls-key", "k"}, "--tls-cert"},
		"password file missing": {[]string{"--user", "u", "--password-file", "/nowhere/p"}, "/nowhere/p"},
		"certificate missing":   {[]string{"--tls-cert", "/nowhere/c", "--tls-key", "/nowhere/k"}, "/nowhere/c"},
		"two certificates":      {[]string{"--tls-cert", "c", "--tls-key", "k", "--tls-generate", "d"}, "--tls-generate"},
		"client CA alone":       {[]string{"--tls-client-ca", "ca"}, "--tls-client-ca"},
		"client CA missing":     {[]string{"--tls-generate", t.TempDir(), "--tls-client-ca", "/nowhere/ca"}, "/nowhere/ca"},
		"client CA empty":       {[]string{"--tls-generate", t.TempDir(), "--tls-client-ca", write(t, "ca.pem", "x")}, "ca.pem"},
		"nowhere to generate":   {[]string{"--tls-generate", "/dev/null/x"}, "/dev/null"},
		"bulk limit":            {[]string{"--bulk-limit", "-1"}, "-1"},
		"version unknown":       {[]string{"--versions", "v24,v99"}, `"v99"`},
		"seed missing":          {[]string{"--seed", "/nowhere/s"}, "/nowhere/s"},
		"seed broken":           {[]string{"--seed", write(t, "a.json", "{")}, "a.json"},
		"seed impossible":       {[]string{"--seed", write(t, "b.json", `[{"uri":"/network/pnfs/pnf/p","body":{}}]`)}, `"/network/pnfs/pnf/p"`},
		"address taken":         {[]string{"--control-listen", socket.Addr().String()}, "cannot listen for control"},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			err := run(t.Context(), slices.Concat(freePorts, tc.args), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("run() = %v, want an error naming %s", err, tc.want)
			}
		})
	}
}

func TestStopDoesNotWaitForDelayedRequests(t *testing.T) {
	fault := `[{"delay":"9m","count":1}]`
	var began time.Time
	later := t.Cleanup // When the command has stopped: until then the client waits for its answer.
	t.Run("served", func(t *testing.T) {
		urls := start(t, 2)
		client := newClient(t, nil)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, urls["control"]+"/__sim/faults", strings.NewReader(fault))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusNoContent {
			t.Fatalf("status %d, %v", response.StatusCode, err)
		}
		socket, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(urls["aai"], "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(socket, "GET /aai/util/echo HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		later(func() { _ = socket.Close() })
		for rules := ""; rules != "[]\n"; { // until the request has used the fault up
			_, rules = get(t, client, urls["control"]+"/__sim/faults", "", "")
		}
		began = time.Now()
	})
	if took := time.Since(began); took > stopTimeout {
		t.Errorf("the stop took %s", took)
	}
}

// clientConfig returns a client configuration that trusts the generated CA in a directory.
func clientConfig(t *testing.T, dir string) *tls.Config {
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

// checkHealth sends a health check to an A&AI.
func checkHealth(t *testing.T, client *http.Client, url string) error {
	t.Helper()
	_, _, err := tryGet(t, client, url+"/aai/util/echo", "", "")
	return err
}

// TestCertificates asserts that without a control listener there is one line only, that a client needs the CA, and that the simulator needs its
// certificate.
func TestCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	urls := start(t, 1, "--control-listen", "", "--tls-generate", dir, "--tls-client-ca", filepath.Join(dir, "ca.pem"))
	var unknown x509.UnknownAuthorityError
	if err := checkHealth(t, newClient(t, nil), urls["aai"]); !errors.As(err, &unknown) {
		t.Errorf("a client that does not know the CA gets %v", err)
	}
	config := clientConfig(t, dir)
	// With TLS 1.3 the client's handshake can end before the server has verified its certificate. Then the client gets either
	// the reason or a broken connection.
	config.MaxVersion = tls.VersionTLS12
	if err := checkHealth(t, newClient(t, config), urls["aai"]); err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
		t.Errorf("without a certificate: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{pair}
	if err := checkHealth(t, newClient(t, config), urls["aai"]); err != nil {
		t.Errorf("with the certificate: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "client-key.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	stranger := config.Clone()
	foreign, err := generate(t.TempDir(), "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stranger.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
	if err := checkHealth(t, newClient(t, stranger), urls["aai"]); err == nil {
		t.Error("a certificate of another program is taken")
	}
}

func TestCertificateFromFiles(t *testing.T) {
	dir := t.TempDir()
	pair, err := generate(dir, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	urls := start(t, 1, "--control-listen", "",
		"--tls-cert", write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))),
		"--tls-key", write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))))
	if err := checkHealth(t, newClient(t, clientConfig(t, dir)), urls["aai"]); err != nil {
		t.Error(err)
	}
}

func TestCertificateIsForTheListenAddress(t *testing.T) {
	for _, host := range []string{"sim.example", "192.0.2.1", ""} {
		pair, err := generate(t.TempDir(), host, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{cmp.Or(host, "localhost"), "localhost", "127.0.0.1", "::1"} {
			if err := pair.Leaf.VerifyHostname(name); err != nil {
				t.Errorf("listening at %q: %v", host, err)
			}
		}
	}
}

func TestHelpAndDocumentationListEveryFlag(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run() = %v, want help", err)
	}
	page, err := os.ReadFile("../../../../config/docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)`|none) \\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	want := map[string]string{}
	var c settings
	c.flags(io.Discard).VisitAll(func(f *flag.Flag) {
		want[f.Name] = f.DefValue
		if !strings.Contains(help.String(), "\n  -"+f.Name) {
			t.Errorf("the help lacks %s", f.Name)
		}
	})
	if diff := gocmp.Diff(want, documented); diff != "" {
		t.Errorf("flags and their defaults (-code +page):\n%s", diff)
	}
}
