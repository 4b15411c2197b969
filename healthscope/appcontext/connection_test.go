package appcontext_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestOpenValidatesOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty.pem")
	noError(t, os.WriteFile(file, []byte("nothing"), 0o600))
	one := []string{"https://etcd:2379"}
	for name, tc := range map[string]struct {
		options appcontext.Options
		want    string
	}{
		"no endpoint":       {appcontext.Options{}, "Endpoints"},
		"no URL":            {appcontext.Options{Endpoints: []string{"etcd:2379"}}, "Endpoints must be http or https URLs"},
		"a path":            {appcontext.Options{Endpoints: []string{"http://etcd:2379/v3"}}, `"http://etcd:2379/v3"`},
		"a user in the URL": {appcontext.Options{Endpoints: []string{"http://u:secret@etcd:2379"}}, "user"},
		"two schemes":       {appcontext.Options{Endpoints: []string{"https://a:1", "http://b:1"}}, "same scheme"},
		"user alone":        {appcontext.Options{Endpoints: one, Username: "u"}, "Password"},
		"certificate alone": {appcontext.Options{Endpoints: one, CertFile: "x"}, "KeyFile"},
		"TLS without https": {appcontext.Options{Endpoints: []string{"http://a:1"}, CAFile: "x"}, "https"},
		"no certificate":    {appcontext.Options{Endpoints: one, CAFile: file}, "holds no certificate"},
		"no file":           {appcontext.Options{Endpoints: one, CAFile: "/nowhere"}, "/nowhere"},
		"no key":            {appcontext.Options{Endpoints: one, CertFile: file, KeyFile: file}, "CertFile"},
		"negative timeout":  {appcontext.Options{Endpoints: one, Timeout: -1}, "Timeout"},
		"tiny requests":     {appcontext.Options{Endpoints: one, MaxRequestBytes: 1}, "MaxRequestBytes 1"},
		"negative interval": {appcontext.Options{Endpoints: one, ProgressInterval: -1}, "ProgressInterval"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := appcontext.Open(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "cannot open AppContext store: ") {
				t.Errorf("want %q in the error, got: %v", tc.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestOpenAcceptsTheSmallestRequests(t *testing.T) {
	closeStore(t, must(appcontext.Open(appcontext.Options{Endpoints: []string{"http://etcd:2379"}, MaxRequestBytes: 1024}))(t))
}

func TestOptionsDoNotShowThePassword(t *testing.T) {
	o := appcontext.Options{Endpoints: []string{"http://etcd:2379"}, Username: "u", Password: "secret"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, o); strings.Contains(text, "secret") || !strings.Contains(text, "etcd:2379") {
			t.Errorf("%s shows %s", format, text)
		}
	}
}

func TestUnreachableEtcdIsReportedInTime(t *testing.T) {
	t.Parallel()
	listener := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t) // It accepts connections and never responds.
	t.Cleanup(func() { _ = listener.Close() })
	silent := "http://" + listener.Addr().String()
	gone := ownEtcd(t, controlplane.EtcdOptions{})
	noError(t, gone.Kill())
	for name, options := range map[string]appcontext.Options{
		"refuses":            {Endpoints: []string{gone.Endpoint()}},
		"is silent":          {Endpoints: []string{silent}},
		"silent, with user":  {Endpoints: []string{silent}, Username: "u", Password: "p"},
		"refuses, with user": {Endpoints: []string{gone.Endpoint()}, Username: "u", Password: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options.Timeout = 300 * time.Millisecond
			store := open(t, options)
			begin := time.Now()
			wantError(t, just(store.Snapshot(t.Context(), "1")), appcontext.ErrUnavailable)
			wantError(t, makeContext(t.Context(), store), appcontext.ErrUnavailable)
			r := appcontext.Record{Subject: appcontext.ClusterRef("p", "c"), Action: action(appcontext.ActionCreated, "", 0)}
			wantError(t, store.RecordAction(t.Context(), r), appcontext.ErrUnavailable)
			wantError(t, just(store.Lock(t.Context(), "name")), appcontext.ErrUnavailable)
			if took := time.Since(begin); took > testTimeout/2 {
				t.Errorf("four calls with a deadline of 300 ms took %s", took)
			}
		})
	}
}

func TestStoreAndCacheConnectWhenEtcdStarts(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	noError(t, etcd.Kill())
	options := optionsOf(etcd)
	options.Timeout = 100 * time.Millisecond // The cache cannot be loaded while this call ends.
	wantError(t, ask(t.Context(), runCache(t, open(t, options), appcontext.CacheOptions{}), "4711"), appcontext.ErrUnavailable)
	options.Timeout = testTimeout
	patient := runCache(t, open(t, options), appcontext.CacheOptions{})
	answered := make(chan error, 1)
	go func() { answered <- ask(t.Context(), patient, "4711") }()
	options.Timeout, options.Username, options.Password = time.Second, "u", "p"
	store := open(t, options)
	wantError(t, makeContext(t.Context(), store), appcontext.ErrUnavailable)
	noError(t, etcd.Start(t.Context()))
	wantError(t, <-answered, appcontext.ErrNotFound)
	eventually(t, "the store does not connect", func(ctx context.Context) error { return makeContext(ctx, store) })
}

// makeContext creates a context.
func makeContext(ctx context.Context, store *appcontext.Store) error {
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	return just(ac.CreateCompositeApp(ctx))
}

func TestClosedStoreReturnsErrClosed(t *testing.T) {
	store := open(t, appcontext.Options{})
	noError(t, makeContext(t.Context(), store))
	closeStore(t, store)
	wantError(t, just(store.Snapshot(t.Context(), "1")), appcontext.ErrClosed)
	closeStore(t, store)
}

// enableUsers makes user emco, who may read and write ranges of keys. Besides it, etcd accepts root only.
func enableUsers(t testing.TB, client *clientv3.Client, ranges ...[2]string) {
	t.Helper()
	ctx := t.Context()
	errs := []error{just(client.RoleAdd(ctx, "contexts"))}
	for _, r := range ranges {
		errs = append(errs, just(client.RoleGrantPermission(ctx, "contexts", r[0], r[1], clientv3.PermissionType(clientv3.PermReadWrite))))
	}
	errs = append(errs,
		just(client.UserAdd(ctx, "emco", "geheim")),
		just(client.UserGrantRole(ctx, "emco", "contexts")),
		just(client.UserAdd(ctx, "root", "root")),
		just(client.UserGrantRole(ctx, "root", "root")),
		just(client.AuthEnable(ctx)))
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("cannot enable authentication: %v", err)
	}
}

func TestUsersAndPasswords(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	enableUsers(t, rawClient(t, etcd.Endpoint()), [2]string{"/context/", "/healthscope0"})
	as := func(user, password string) *appcontext.Store {
		return open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Username: user, Password: password})
	}
	store := as("emco", "geheim")
	ac, h := newContext(t, store)
	cache := runCache(t, store, appcontext.CacheOptions{})
	noError(t, ask(t.Context(), cache, ac.ID()))
	add(t, ac, h, "a", "p+c", "r+Kind")
	snapshotSince(t, cache, ac.ID(), must(store.Snapshot(t.Context(), ac.ID()))(t).Revision())
	wantError(t, store.WatchActive(t.Context(), nil), appcontext.ErrDenied) // These keys are not in the range.
	denied := runCache(t, open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Username: "emco", Password: "secret", Timeout: time.Second}), appcontext.CacheOptions{})
	eventually(t, "the cache does not say why it cannot watch", func(ctx context.Context) error {
		if err := ask(ctx, denied, ac.ID()); !errors.Is(err, appcontext.ErrDenied) {
			return fmt.Errorf("want ErrDenied, got: %w", err)
		}
		return nil
	})
	for name, denied := range map[string]*appcontext.Store{"wrong password": as("emco", "secret"), "unknown user": as("nobody", "x"), "no user": as("", "")} {
		err := just(denied.Snapshot(t.Context(), ac.ID()))
		if !errors.Is(err, appcontext.ErrDenied) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: want ErrDenied without the password, got: %v", name, err)
		}
	}
}

// certificate writes a certificate and its key, and returns both. parent signs the certificate. Without a parent, it is
// self-signed.
func certificate(t *testing.T, dir, name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name + ".example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))(t)
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))(t)},
	} {
		noError(t, os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600))
	}
	return must(x509.ParseCertificate(der))(t), key
}

func TestTLSWithCertificatesOnBothSides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca, key := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", ca, key)
	certificate(t, dir, "client", ca, key)
	certificate(t, dir, "other", nil, nil)
	etcd := ownEtcd(t, controlplane.EtcdOptions{CertFile: file("server.crt"), KeyFile: file("server.key"), ClientCAFile: file("ca.crt")})
	with := func(ca, certificate, key, name string) *appcontext.Store {
		return open(t, appcontext.Options{
			Endpoints: []string{etcd.Endpoint()}, CAFile: file(ca), CertFile: certificate, KeyFile: key, ServerName: name, Timeout: time.Second,
		})
	}
	welcome := func(what string, store *appcontext.Store) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error { return makeContext(ctx, store) })
	}
	store := with("ca.crt", file("client.crt"), file("client.key"), "")
	welcome("the certificate is not accepted", store)
	welcome("another name of etcd is not accepted", with("ca.crt", file("client.crt"), file("client.key"), "server.example.org"))
	for name, stranger := range map[string]*appcontext.Store{
		"another authority":      with("other.crt", file("client.crt"), file("client.key"), ""),
		"another name":           with("ca.crt", file("client.crt"), file("client.key"), "another.example.org"),
		"no certificate of ours": with("ca.crt", "", "", ""),
	} {
		if err := just(stranger.Snapshot(t.Context(), "1")); err == nil || errors.Is(err, appcontext.ErrNotFound) {
			t.Errorf("%s: want no connection, got: %v", name, err)
		}
	}
	// A renewed certificate is used for the next connection, without opening the store again.
	noError(t, etcd.Kill())
	certificate(t, dir, "client", nil, nil) // Etcd does not trust it.
	noError(t, etcd.Start(t.Context()))
	wantError(t, just(store.Snapshot(t.Context(), "1")), appcontext.ErrUnavailable)
	certificate(t, dir, "client", ca, key)
	welcome("the renewed certificate is not used", store)
}
