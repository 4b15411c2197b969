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
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
			c := connect(t, serve(t, raw(answer)).URL)
			for call, do := range calls {
				if e := failure(t, do(t.Context(), c)); e.Kind != aai.Retry || e.Err == nil {
					t.Errorf("%s: got %s, %v; want Retry with a cause", call, e.Kind, e)
				}
			}
		})
	}
}

func TestConnectionResetByPeer(t *testing.T) {
	sent := 0
	c := connect(t, "", through(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}))
	for call, do := range calls {
		if e := failure(t, do(t.Context(), c)); e.Kind != aai.Retry || e.Status != 0 || !strings.HasSuffix(e.Error(), "connection reset by peer (transaction "+e.TransactionID+")") {
			t.Errorf("%s: got %s: %v", call, e.Kind, e)
		}
	}
	if sent != len(calls) {
		t.Errorf("%d requests for %d calls: the client must not repeat them", sent, len(calls))
	}
}

func TestEveryCallHasADeadline(t *testing.T) {
	for name, begin := range map[string]string{"in the head": "", "in the body": `{"id":`} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, begin)
				if begin != "" {
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			c := connect(t, s.URL, func(o *client.Options) { o.Timeout = 20 * time.Millisecond })
			for call, do := range calls {
				if e := failure(t, do(t.Context(), c)); e.Kind != aai.Retry || !errors.Is(e, context.DeadlineExceeded) {
					t.Errorf("%s: got %s: %v", call, e.Kind, e)
				}
			}
		})
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

func TestConnectionsAreReused(t *testing.T) {
	from := map[string]bool{}
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { from[r.RemoteAddr] = true })
	c := connect(t, s.URL)
	for range 3 {
		if err := update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if len(from) != 1 {
		t.Errorf("three requests took %d connections", len(from))
	}
}

// serveTLS starts a server with a certificate, which accepts every request of a client whose certificate is in the pool. Nil
// means that a client needs none.
func serveTLS(t *testing.T, certificate tls.Certificate, clients *x509.CertPool) *server {
	t.Helper()
	s := newServer(func(http.ResponseWriter, *http.Request) {})
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	if clients != nil {
		// With TLS 1.3, the client's handshake can end before the server has checked the client certificate. The client then
		// gets either the alert or a broken connection.
		s.TLS.ClientAuth, s.TLS.MaxVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS12
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCertificatesAreVerified(t *testing.T) {
	good, expired := issue(t, time.Now().Add(time.Hour)), issue(t, time.Now().Add(-time.Hour))
	cases := map[string]struct {
		certificate issued
		authority   []byte // nil for those of the system
		trusted     bool
	}{
		"trusted by CAFile": {good, good.certificate, true},
		"self-signed":       {good, nil, false},
		"another authority": {good, expired.certificate, false},
		"expired":           {expired, expired.certificate, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, caFile := serveTLS(t, c.certificate.Certificate, nil), ""
			if c.authority != nil {
				caFile = filepath.Join(t.TempDir(), "ca.crt")
				if err := os.WriteFile(caFile, c.authority, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := update(t.Context(), connect(t, s.URL, func(o *client.Options) { o.CAFile = caFile }))
			if c.trusted {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := failure(t, err); e.Kind != aai.Misconfigured || e.Problem != aai.ProblemCertificate || !strings.Contains(e.Error(), "cannot be trusted") || len(s.received()) > 0 {
				t.Errorf("got %s: %v", e.Kind, e)
			}
		})
	}
}

// TestAlertsThatEndHandshakes has servers that send a TLS alert, as RFC 8446 numbers them, to every client.
func TestAlertsThatEndHandshakes(t *testing.T) {
	for name, c := range map[string]struct {
		alert   byte
		kind    aai.ErrorKind
		problem aai.Problem
	}{
		"an internal error":               {80, aai.Retry, ""},
		"a certificate of another client": {42, aai.Misconfigured, aai.ProblemCertificate},
		"a signature of a former CA":      {51, aai.Misconfigured, aai.ProblemCertificate}, // From OpenSSL, if both CAs have the same name.
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed below.
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go sendAlerts(listener, c.alert)
			if e := failure(t, connect(t, "https://"+listener.Addr().String()).Probe(t.Context())); e.Kind != c.kind || e.Problem != c.problem {
				t.Errorf("got %s, %s: %v", e.Kind, e.Problem, e)
			}
		})
	}
}

// sendAlerts answers the first message of each connection with a fatal alert, until the listener is closed.
func sendAlerts(listener net.Listener, alert byte) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := connection.Read(make([]byte, 1<<14)); err == nil {
			_, _ = connection.Write([]byte{21, 3, 3, 0, 2, 2, alert})
			_, _ = io.Copy(io.Discard, connection) // A connection that is closed with unread bytes may lose what was written.
		}
		_ = connection.Close()
	}
}

// issued is a certificate with its key. The last two fields are both in PEM.
type issued struct {
	tls.Certificate
	certificate, key []byte
}

// issue returns a self-signed certificate for loopback.
func issue(t *testing.T, notAfter time.Time) issued {
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
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return issued{
		tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}

// TestCertificatesAreReadAgain corrects the CA file and the client certificate, which A&AI requires, while the client runs.
func TestCertificatesAreReadAgain(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour)
	server, ours, stranger := issue(t, tomorrow), issue(t, tomorrow), issue(t, tomorrow)
	accepted := x509.NewCertPool()
	accepted.AppendCertsFromPEM(ours.certificate)
	s := serveTLS(t, server.Certificate, accepted)

	dir, now := t.TempDir(), time.Now().Add(-time.Hour)
	ca, cert, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	var c *client.Client
	for _, step := range []struct {
		name    string
		replace map[string][]byte // the new contents of files
		problem aai.Problem
		text    string
	}{
		{"a wrong authority, and a wrong certificate of ours", map[string][]byte{ca: stranger.certificate, cert: stranger.certificate, keyFile: stranger.key}, aai.ProblemCertificate, "cannot be trusted"},
		{"the right authority", map[string][]byte{ca: server.certificate}, aai.ProblemCertificate, "our certificate"},
		{"a certificate without its key", map[string][]byte{cert: ours.certificate}, aai.ProblemCertificate, "our certificate"},
		{"its key", map[string][]byte{keyFile: ours.key}, "", ""},
		{"a file that cannot be used", map[string][]byte{ca: []byte("nothing")}, "", ""},
	} {
		now = now.Add(time.Minute) // The modification time tells a file from its predecessor.
		for file, content := range step.replace {
			if err := errors.Join(os.WriteFile(file, content, 0o600), os.Chtimes(file, now, now)); err != nil {
				t.Fatal(err)
			}
		}
		if c == nil {
			c = connect(t, s.URL, func(o *client.Options) { o.CAFile, o.CertFile, o.KeyFile = ca, cert, keyFile })
		}
		err := update(t.Context(), c)
		if step.problem == "" {
			if err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			continue
		}
		if e := failure(t, err); e.Kind != aai.Misconfigured || e.Problem != step.problem || !strings.Contains(e.Error(), step.text) {
			t.Errorf("%s: got %s %s, %v", step.name, e.Kind, e.Problem, e)
		}
	}
}
