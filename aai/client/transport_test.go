package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// raw returns a handler that responds to every request with these bytes and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = buffer.WriteString(answer)
		_ = buffer.Flush()
		_ = connection.Close()
	}
}

func TestBrokenAnswersAreRetried(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, answer := range map[string]string{
		"no answer":        "",
		"no HTTP":          "SSH-2.0-OpenSSH\r\n\r\n",
		"cut in the head":  "HTTP/1.1 200",
		"cut in the body":  ok + "Content-Length: 500\r\n\r\n{\"k8s-resource\":[",
		"cut in the chunk": ok + "Transfer-Encoding: chunked\r\n\r\n40\r\n{",
		"no gzip":          ok + "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, raw(answer))
			for call, do := range calls(t, connect(t, s.URL)) {
				err := do()
				if e := failure(t, err); e.Kind != aai.Retry || e.Err == nil {
					t.Errorf("%s: got %s, %v; want Retry with a cause", call, e.Kind, err)
				}
			}
		})
	}
}

func TestConnectionResetByPeer(t *testing.T) {
	transport := httpmock.NewMockTransport()
	transport.RegisterNoResponder(httpmock.NewErrorResponder(&net.OpError{Op: "read", Err: os.NewSyscallError("read", errors.New("connection reset by peer"))}))
	c := connect(t, "http://aai.example", func(o *client.Options) { o.Transport = transport })
	all := calls(t, c)
	for call, do := range all {
		if e := failure(t, do()); e.Kind != aai.Retry || e.Status != 0 || !strings.Contains(e.Error(), "connection reset by peer") {
			t.Errorf("%s: got %s: %v", call, e.Kind, e)
		}
	}
	if n := transport.GetTotalCallCount(); n != len(all) {
		t.Errorf("%d requests for %d calls: the client must not repeat them", n, len(all))
	}
}

func TestEveryCallHasADeadline(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	for call, do := range calls(t, connect(t, s.URL, func(o *client.Options) { o.Timeout = 20 * time.Millisecond })) {
		e := failure(t, do())
		if e.Kind != aai.Retry || !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("%s: got %s: %v", call, e.Kind, e)
		}
	}
}

func TestSlowResponseHasADeadline(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"id":`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, _, err := connect(t, s.URL, func(o *client.Options) { o.Timeout = 50 * time.Millisecond }).GetK8sResource(t.Context(), key)
	if e := failure(t, err); e.Kind != aai.Retry || !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("got %s: %v", e.Kind, e)
	}
}

func TestTheCallerCanCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if err := update(ctx, connect(t, s.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestResponseSizeIsBounded(t *testing.T) {
	chunk := strings.Repeat("x", 1<<20)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 32 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	_, err := connect(t, s.URL, func(o *client.Options) { o.Timeout = time.Minute }).ListK8sResources(t.Context(), tenant, "x")
	if e := failure(t, err); e.Kind != aai.Misconfigured || !strings.Contains(e.Error(), "longer than") {
		t.Errorf("got %s: %v", e.Kind, e)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	for call, do := range calls(t, connect(t, s.URL)) {
		if e := failure(t, do()); e.Kind != aai.Misconfigured {
			t.Errorf("%s: got %s: %v", call, e.Kind, e)
		}
	}
	if n := len(elsewhere.received()); n > 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	good, goodFile := certificate(t, time.Now().Add(time.Hour))
	expired, expiredFile := certificate(t, time.Now().Add(-time.Hour))
	cases := map[string]struct {
		certificate tls.Certificate
		caFile      string
		kind        aai.ErrorKind
	}{
		"trusted by CAFile": {good, goodFile, ""},
		"self-signed":       {good, "", aai.Misconfigured},
		"another authority": {good, expiredFile, aai.Misconfigured},
		"expired":           {expired, expiredFile, aai.Misconfigured},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			s.TLS = &tls.Config{Certificates: []tls.Certificate{c.certificate}}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			t.Cleanup(s.Close)
			err := update(t.Context(), connect(t, s.URL, func(o *client.Options) { o.CAFile = c.caFile }))
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := failure(t, err); e.Kind != c.kind || !strings.Contains(e.Error(), "cannot be trusted") || len(s.received()) > 0 {
				t.Errorf("got %s: %v", e.Kind, e)
			}
		})
	}
}

// certificate returns a self-signed certificate for loopback, and a file that holds it.
func certificate(t *testing.T, notAfter time.Time) (tls.Certificate, string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: notAfter.Add(-24 * time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, file
}

func TestPlainHTTPWhereTLSIsExpected(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	e := failure(t, connect(t, strings.Replace(s.URL, "http:", "https:", 1)).Probe(t.Context()))
	if !strings.Contains(e.Error(), "HTTP response to HTTPS client") {
		t.Errorf("got %v", e)
	}
}

func TestGzipResponseIsDecoded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			fmt.Fprint(w, `{}`)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped(`{"id":"13dd","resource-version":"1"}`))
	})
	if _, found, err := connect(t, s.URL).GetK8sResource(t.Context(), key); err != nil || !found {
		t.Errorf("got %t, %v", found, err)
	}
}

// replace writes a file and sets its modification time, which must differ from the previous one.
func replace(t *testing.T, file string, content []byte, at time.Time) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pemOf returns the certificate and the key in PEM format.
func pemOf(t *testing.T, c tls.Certificate) (certificate, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestCertificatesAreReadAgain corrects the CA file and the client certificate, which A&AI requires, while the client runs.
func TestCertificatesAreReadAgain(t *testing.T) {
	serverCert, serverFile := certificate(t, time.Now().Add(time.Hour))
	ours, oursFile := certificate(t, time.Now().Add(time.Hour))
	stranger, strangerFile := certificate(t, time.Now().Add(time.Hour))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(contents(t, oursFile))
	s := newServer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	// With TLS 1.3, the client's handshake can end before the server has checked the client certificate. The client then gets
	// either the alert or a broken connection.
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{serverCert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	dir := t.TempDir()
	ca, cert, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	start := time.Now().Add(-time.Hour)
	certPEM, keyPEM := pemOf(t, stranger)
	replace(t, ca, contents(t, strangerFile), start)
	replace(t, cert, certPEM, start)
	replace(t, keyFile, keyPEM, start)
	c := connect(t, s.URL, func(o *client.Options) { o.CAFile, o.CertFile, o.KeyFile = ca, cert, keyFile })
	call := func() error { return update(t.Context(), c) }
	if e := failure(t, call()); e.Problem != aai.ProblemCertificate || !strings.Contains(e.Error(), "cannot be trusted") {
		t.Errorf("with a wrong authority: %s, %v", e.Problem, e)
	}
	replace(t, ca, contents(t, serverFile), start.Add(time.Minute))
	if e := failure(t, call()); e.Kind != aai.Misconfigured || e.Problem != aai.ProblemCertificate || !strings.Contains(e.Error(), "our certificate") {
		t.Errorf("with a wrong certificate of ours: %s %s, %v", e.Kind, e.Problem, e)
	}
	certPEM, keyPEM = pemOf(t, ours)
	replace(t, cert, certPEM, start.Add(2*time.Minute))
	if call() == nil {
		t.Error("a certificate without its key was used")
	}
	replace(t, keyFile, keyPEM, start.Add(3*time.Minute))
	if err := call(); err != nil {
		t.Error(err)
	}
	replace(t, ca, []byte("nothing"), start.Add(4*time.Minute))
	if err := call(); err != nil {
		t.Errorf("a file that cannot be used takes the place of one that can: %v", err)
	}
}
