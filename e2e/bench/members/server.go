package members

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// headerTimeout is how long a request may take to be sent.
const headerTimeout = 10 * time.Second

// Fleet is the clusters of one process, which share an authority and a token.
type Fleet struct {
	// Authority is the certificate of the authority of all servers, as PEM.
	Authority []byte
	// Token is the token that all servers ask for.
	Token string
	// Servers are the clusters, in the order in which they were started.
	Servers []*Server

	certificate tls.Certificate
}

// Server is the API server of one cluster.
type Server struct {
	// Name is the cluster's name in the hub.
	Name string
	// URL is where it listens, on loopback.
	URL string

	token   string
	http    *http.Server
	serving sync.WaitGroup
	bundles *collection
	leases  *collection
}

// Start starts a server for each name. They hold nothing yet. They run until Stop is called.
func Start(ctx context.Context, names []string) (*Fleet, error) {
	f := &Fleet{Token: rand.Text()}
	var err error
	if f.Authority, f.certificate, err = newCertificate(time.Now()); err != nil {
		return nil, fmt.Errorf("cannot make a certificate for clusters: %w", err)
	}
	for _, name := range names {
		s := &Server{
			Name: name, token: f.Token,
			bundles: newCollection(k8spluginv1alpha1.GroupVersion.String(), k8spluginv1alpha1.ResourceBundleStateKind),
			leases:  newCollection(coordinationv1.SchemeGroupVersion.String(), "Lease"),
		}
		if err := s.listen(ctx, f.certificate); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot start the API server of cluster %q: %w", name, err), f.Stop())
		}
		f.Servers = append(f.Servers, s)
	}
	return f, nil
}

// Stop stops all servers.
func (f *Fleet) Stop() error {
	var errs []error
	for _, s := range f.Servers {
		errs = append(errs, s.http.Close())
		s.serving.Wait()
	}
	return errors.Join(errs...)
}

func (s *Server) listen(ctx context.Context, certificate tls.Certificate) error {
	listener, err := listen(ctx)
	if err != nil {
		return err
	}
	s.URL = "https://" + listener.Addr().String()
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		ErrorLog:  log.New(io.Discard, "", 0), // Connections that end while something is written are the reader's business.
	}
	s.serving.Go(func() {
		if err := s.http.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("the API server of cluster %q has ended: %v", s.Name, err)) // It is a test's own.
		}
	})
	return nil
}

// firstPort and lastPort are the ports that servers listen on: not those that systems give to whoever asks for any, so that
// a program that has chosen a free one before it starts still finds it free.
const firstPort, lastPort = 20000, 32000

// listen listens on the first port that is free.
func listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	for port := firstPort; ; port++ {
		listener, err := lc.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil || ctx.Err() != nil || port == lastPort {
			return listener, err
		}
	}
}

// handler serves what a hub asks for, to whoever has the token.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, c := range map[string]*collection{
		"/apis/k8splugin.io/v1alpha1/%sresourcebundlestates": s.bundles,
		"/apis/coordination.k8s.io/v1/%sleases":              s.leases,
	} {
		serve := func(w http.ResponseWriter, r *http.Request) { c.serve(w, r) }
		mux.HandleFunc("GET "+fmt.Sprintf(path, ""), serve)
		mux.HandleFunc("GET "+fmt.Sprintf(path, "namespaces/{namespace}/"), serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_ = fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %s is not served", r.Method, r.URL.Path))
	})
	known := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+s.token {
			_ = fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
			return
		}
		mux.ServeHTTP(w, r)
	})
	all := http.NewServeMux()
	all.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	all.Handle("/", known)
	return all
}

// serve answers a list or a watch.
func (c *collection) serve(w http.ResponseWriter, r *http.Request) {
	q, err := parse(r.PathValue("namespace"), r.URL.Query())
	switch {
	case err != nil:
		err = fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	case q.watch:
		err = c.watch(r.Context(), w, q)
	default:
		err = c.list(w, q)
	}
	if err != nil && r.Context().Err() == nil {
		panic(http.ErrAbortHandler) // The answer is cut off, so that nobody takes it for whole.
	}
}

// fail answers with an error, as API servers do.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) error {
	status, err := statusOf(code, reason, message)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, err = w.Write(status)
	return err
}

func statusOf(code int, reason metav1.StatusReason, message string) ([]byte, error) {
	return json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Reason: reason, Code: int32(code),
	})
}

// newCertificate makes a certificate for this machine that is its own authority.
func newCertificate(now time.Time) (authority []byte, certificate tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, certificate, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "members"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(7 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, certificate, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return authority, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Bundle is what a ResourceBundleState holds besides its name, ready to be sent. Servers share it.
type Bundle struct{ labels, rest []byte }

// NewBundle prepares a bundle, so that it can be put into many clusters at no cost.
func NewBundle(b *k8spluginv1alpha1.ResourceBundleState) (Bundle, error) {
	labels, err := json.Marshal(b.Labels)
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot encode bundle %q: %w", b.Name, err)
	}
	rest, err := json.Marshal(map[string]any{"spec": b.Spec, "status": b.Status})
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot encode bundle %q: %w", b.Name, err)
	}
	rest[0] = ',' // It is the second part of an object.
	return Bundle{labels: labels, rest: rest}, nil
}

// Put makes the bundle of a name be as it is given.
func (s *Server) Put(name types.NamespacedName, b Bundle) {
	s.bundles.put(name, func(version string) (head, tail []byte) {
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q,"labels":%s}`,
			s.bundles.apiVersion, s.bundles.kind, name.Namespace, name.Name, s.Name+"/"+name.String(), version, b.labels), b.rest
	})
}

// Remove removes a bundle, if it is there.
func (s *Server) Remove(name types.NamespacedName) { s.bundles.remove(name) }

// Renew makes the Lease of the cluster's monitor, or renews it, as the monitor does.
func (s *Server) Renew(name types.NamespacedName, now time.Time) {
	s.leases.put(name, func(version string) (head, tail []byte) {
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q}`,
				s.leases.apiVersion, s.leases.kind, name.Namespace, name.Name, s.Name, version),
			fmt.Appendf(nil, `,"spec":{"holderIdentity":"monitor","leaseDurationSeconds":15,"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	})
}

// Beat renews the Leases of all clusters, each every interval, until ctx ends.
func (f *Fleet) Beat(ctx context.Context, name types.NamespacedName, interval time.Duration) {
	for _, s := range f.Servers {
		s.Renew(name, time.Now())
	}
	ticker := time.NewTicker(interval / time.Duration(len(f.Servers)))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case now := <-ticker.C:
			f.Servers[i%len(f.Servers)].Renew(name, now)
		case <-ctx.Done():
			return
		}
	}
}

// Names returns names of clusters for Start: prefix and a number.
func Names(prefix string, n int) []string {
	width := len(strconv.Itoa(n - 1))
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s%0*d", prefix, width, i))
	}
	return names
}
