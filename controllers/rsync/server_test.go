package rsync_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/healthscope/healthscope/controllers/access"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/controllers/rsync/server"
	healthscopeapi "github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// serve runs a gRPC server until the spec ends or stop is called. stop waits until the server has ended.
func serve(ctx context.Context, o server.Options) (address string, stop func()) {
	GinkgoHelper()
	o.Address, o.Store, o.Logger = "127.0.0.1:0", store, GinkgoLogr
	o.Enqueue = func(ctx context.Context, id string, event deploy.Event, from string) error {
		return rsync.Enqueue(ctx, store, id, event, from, time.Now())
	}
	s := server.New(o)
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx)) // The server must not end before the spec stops it.
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(s.Start(serving)).To(Succeed())
	}()
	stop = func() {
		cancel()
		<-done
	}
	DeferCleanup(stop)
	address = s.Addr(ctx)
	Expect(address).NotTo(BeEmpty())
	return address, stop
}

// dial returns a connection to a server. Without credentials, the connection is not encrypted.
func dial(address string, credential credentials.TransportCredentials) *grpc.ClientConn {
	GinkgoHelper()
	if credential == nil {
		credential = insecure.NewCredentials()
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credential))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = connection.Close() })
	return connection
}

// saveBundle writes the key that a recorder writes after a change of a bundle.
func saveBundle(ctx context.Context, id, app, cluster, text string) {
	GinkgoHelper()
	put(ctx, values{"/context/" + id + "/app/" + app + "/cluster/" + cluster + "/status/": fmt.Sprintf("%q", text)})
}

// places returns a function that receives count notifications from a stream, and returns the apps in clusters that they name.
func places(stream grpc.ServerStreamingClient[rpc.Notification]) func(count int) []string {
	return func(count int) []string {
		GinkgoHelper()
		var all []string
		for range count {
			n, err := stream.Recv()
			Expect(err).NotTo(HaveOccurred())
			all = append(all, n.GetAppContext()+"/"+n.GetApp()+"/"+n.GetCluster())
		}
		return all
	}
}

var _ = Describe("the gRPC server", func() {
	It("has contexts deployed and deleted for EMCO's callers", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("2001", namespace, "web").add("web", edge01, "web+ConfigMap", configMap("web")).values)
		address, _ := serve(ctx, server.Options{})
		client := rpc.NewInstallappClient(dial(address, nil))
		limited, cancel := context.WithTimeout(ctx, 10*time.Second) // EMCO's callers wait no longer.
		defer cancel()

		By("answering when the event is in etcd, without a program that does the work")
		installed, err := client.InstallApp(limited, &rpc.InstallAppRequest{AppContext: "2001"})
		Expect(err).NotTo(HaveOccurred())
		Expect(installed.GetAppContextInstalled()).To(BeTrue(), installed.GetAppContextInstallMessage())
		Expect(stored(ctx, "2001")).To(And(
			HaveKeyWithValue("/context/2001/rsync/AppContextEventQueue/", `{"AcQueue":[{"event":"Instantiate","status":"Pending"}]}`),
			HaveKeyWithValue("/activecontext/2001/", `"2001"`)))
		start(newNetwork())
		becomes(ctx, "2001", "Instantiated")
		uninstalled, err := client.UninstallApp(limited, &rpc.UninstallAppRequest{AppContext: "2001"})
		Expect(err).NotTo(HaveOccurred())
		Expect(uninstalled.GetAppContextUninstalled()).To(BeTrue(), uninstalled.GetAppContextUninstallMessage())
		becomes(ctx, "2001", "Terminated")

		By("refusing what cannot be, and failing where there is no context")
		uninstalled, err = client.UninstallApp(limited, &rpc.UninstallAppRequest{AppContext: "2001"})
		Expect(err).NotTo(HaveOccurred())
		Expect(uninstalled.GetAppContextUninstalled()).To(BeFalse())
		Expect(uninstalled.GetAppContextUninstallMessage()).To(ContainSubstring(`not possible in state "Terminated"`))
		_, err = client.InstallApp(limited, &rpc.InstallAppRequest{AppContext: "2000"})
		Expect(status.Code(err)).To(Equal(codes.NotFound), "%v", err)
		_, err = client.InstallApp(limited, &rpc.InstallAppRequest{AppContext: "../2001"})
		Expect(status.Code(err)).To(Equal(codes.InvalidArgument), "%v", err)
		_, err = client.InstallApp(limited, &rpc.InstallAppRequest{AppContext: string(make([]byte, 64<<10))})
		Expect(status.Code(err)).To(Equal(codes.ResourceExhausted), "%v", err)
	})

	It("adds the event that each method asks for, also of updates and rollbacks", func(ctx SpecContext) {
		for _, id := range []string{"2002", "2003", "2004"} {
			put(ctx, newComposite(id, "default", "web").add("web", edge01, "web+ConfigMap", configMap("web")).values)
		}
		address, _ := serve(ctx, server.Options{})
		connection := dial(address, nil)
		install, update := rpc.NewInstallappClient(connection), rpc.NewUpdateappClient(connection)
		for _, call := range []func() (bool, string, error){
			func() (bool, string, error) {
				r, err := install.InstallApp(ctx, &rpc.InstallAppRequest{AppContext: "2002"})
				return r.GetAppContextInstalled(), r.GetAppContextInstallMessage(), err
			},
			func() (bool, string, error) {
				r, err := update.UpdateApp(ctx, &rpc.UpdateAppRequest{UpdateFromAppContext: "2002", UpdateToAppContext: "2003"})
				return r.GetAppContextUpdated(), r.GetAppContextUpdateMessage(), err
			},
			func() (bool, string, error) {
				r, err := update.RollbackApp(ctx, &rpc.RollbackAppRequest{RollbackFromAppContext: "2003", RollbackToAppContext: "2002"})
				return r.GetAppContextRolledback(), r.GetAppContextRollbackMessage(), err
			},
			func() (bool, string, error) {
				r, err := install.UninstallApp(ctx, &rpc.UninstallAppRequest{AppContext: "2002"})
				return r.GetAppContextUninstalled(), r.GetAppContextUninstallMessage(), err
			},
			func() (bool, string, error) {
				r, err := install.ReadAppContext(ctx, &rpc.ReadAppContextRequest{AppContext: "2004"})
				return r.GetAppContextReadSuccessful(), r.GetAppContextReadMessage(), err
			},
		} {
			accepted, message, err := call()
			Expect(err).NotTo(HaveOccurred())
			Expect(accepted).To(BeTrue())
			Expect(message).To(Equal("the event is accepted"))
		}
		// The context that the rollback was to replace is terminated too.
		for id, want := range map[string][]string{"2002": {"Instantiate", "Update 2003", "Terminate"}, "2003": {"Update 2002", "Terminate"}, "2004": {"Read"}} {
			s, err := store.Snapshot(ctx, id)
			Expect(err).NotTo(HaveOccurred())
			l, err := deploy.ReadLifecycle(s)
			Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, e := range l.Queue {
				got = append(got, strings.TrimSpace(string(e.Event)+" "+e.UpdateContextID))
			}
			Expect(got).To(Equal(want), id)
		}
	})

	It("notifies of the bundles that there are, and then of each change", func(ctx SpecContext) {
		saveBundle(ctx, "2010", "web", edge01, `{"ready":false}`)
		saveBundle(ctx, "2010", "db", edge02, `{"ready":false}`)
		put(ctx, values{"/context/2010/app/db/cluster/" + edge02 + "/resource/db+Deployment/status/": state("Applied"), "/context/20100/app/x/cluster/" + edge02 + "/status/": `"{}"`})
		before := goleak.IgnoreCurrent()
		address, stop := serve(ctx, server.Options{})
		connection := dial(address, nil)
		client := rpc.NewReadyNotifyClient(connection)
		stream, err := client.Alert(ctx, &rpc.Topic{ClientName: "dcm", AppContext: "2010"})
		Expect(err).NotTo(HaveOccurred())
		next := places(stream)
		Expect(next(2)).To(ConsistOf("2010/web/"+edge01, "2010/db/"+edge02))
		saveBundle(ctx, "2010", "web", edge01, `{"ready":true}`)
		Expect(next(1)).To(ConsistOf("2010/web/" + edge01))

		By("replacing a stream by a later one of the same client, and leaving those of others")
		other, err := client.Alert(ctx, &rpc.Topic{ClientName: "sds", AppContext: "2010"})
		Expect(err).NotTo(HaveOccurred())
		Expect(places(other)(2)).To(HaveLen(2))
		later, err := client.Alert(ctx, &rpc.Topic{ClientName: "dcm", AppContext: "2010"})
		Expect(err).NotTo(HaveOccurred())
		Expect(places(later)(2)).To(HaveLen(2))
		_, err = stream.Recv()
		Expect(status.Code(err)).To(Equal(codes.Aborted), "%v", err)

		By("ending the stream of a client that unsubscribes, and all when the server stops")
		_, err = client.Unsubscribe(ctx, &rpc.Topic{ClientName: "dcm", AppContext: "2010"})
		Expect(err).NotTo(HaveOccurred())
		_, err = later.Recv()
		Expect(err).To(MatchError("EOF"))
		saveBundle(ctx, "2010", "db", edge02, `{"ready":true}`)
		Expect(places(other)(1)).To(ConsistOf("2010/db/" + edge02))
		stop()
		_, err = other.Recv()
		Expect(status.Code(err)).To(Equal(codes.Unavailable), "%v", err)
		Expect(connection.Close()).To(Succeed())
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	}, SpecTimeout(time.Minute))

	It("distinguishes the streams of callers, and ends those of a caller whose right has ended", func(ctx SpecContext) {
		saveBundle(ctx, "2030", "web", edge01, `{"ready":false}`)
		guard := &revocableGuard{}
		address, _ := serve(ctx, server.Options{Guard: guard})
		client, ofClient := rpc.NewReadyNotifyClient(dial(address, nil)), &rpc.Topic{ClientName: "dcm", AppContext: "2030"}
		as := func(name string) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+name)
		}
		first, err := client.Alert(as("first"), ofClient)
		Expect(err).NotTo(HaveOccurred())
		Expect(places(first)(1)).To(HaveLen(1))
		second, err := client.Alert(as("second"), ofClient)
		Expect(err).NotTo(HaveOccurred())
		Expect(places(second)(1)).To(HaveLen(1))
		_, err = client.Unsubscribe(as("first"), ofClient)
		Expect(err).NotTo(HaveOccurred())
		_, err = first.Recv()
		Expect(err).To(MatchError("EOF"))
		saveBundle(ctx, "2030", "web", edge01, `{"ready":true}`)
		Expect(places(second)(1)).To(HaveLen(1))
		guard.revoked.Store(true)
		saveBundle(ctx, "2030", "web", edge01, `{"ready":false}`)
		_, err = second.Recv()
		Expect(status.Code(err)).To(Equal(codes.PermissionDenied), "%v", err)
	}, SpecTimeout(time.Minute))

	It("serves callers with a certificate or a token that have a right, over TLS", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("2020", namespace, "web").add("web", edge01, "web+ConfigMap", configMap("web")).values)
		authority := newAuthority()
		address, _ := serve(ctx, server.Options{TLS: authority.server(), Guard: newGuard()})
		deployer, stranger := newAccount(ctx, namespace), newAccount(ctx, namespace)
		grant(ctx, namespace+"-deployer", rbacv1.PolicyRule{NonResourceURLs: []string{"/installapp/*"}, Verbs: []string{"deploy"}},
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: deployer}, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "orchestrator"})
		grant(ctx, namespace+"-watcher", rbacv1.PolicyRule{NonResourceURLs: []string{"/readyNotify/*"}, Verbs: []string{"watch"}},
			rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "watchers"})
		// code returns the status code of a call with credentials: of InstallApp if install is true, and otherwise of a stream of
		// notifications.
		code := func(credential credentials.TransportCredentials, token string, install bool) codes.Code {
			GinkgoHelper()
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if token != "" {
				limited = metadata.AppendToOutgoingContext(limited, "authorization", "Bearer "+token)
			}
			connection := dial(address, credential)
			var err error
			if install {
				_, err = rpc.NewInstallappClient(connection).InstallApp(limited, &rpc.InstallAppRequest{AppContext: "2020"})
				return status.Code(err)
			}
			stream, err := rpc.NewReadyNotifyClient(connection).Alert(limited, &rpc.Topic{ClientName: "c", AppContext: "2020"})
			Expect(err).NotTo(HaveOccurred())
			saveBundle(ctx, "2020", "web", edge01, "{}")
			_, err = stream.Recv()
			return status.Code(err)
		}
		anonymous := authority.client()
		Expect(code(anonymous, tokenOf(ctx, namespace, deployer), true)).To(Equal(codes.OK))
		Expect(code(anonymous, tokenOf(ctx, namespace, deployer), false)).To(Equal(codes.PermissionDenied), "the right to deploy is none to watch")
		Expect(code(anonymous, tokenOf(ctx, namespace, stranger), true)).To(Equal(codes.PermissionDenied))
		Expect(code(anonymous, "no.such.token", true)).To(Equal(codes.Unauthenticated))
		Expect(code(anonymous, "", true)).To(Equal(codes.Unauthenticated))
		Expect(code(authority.client("orchestrator"), "", true)).To(Equal(codes.OK))
		Expect(code(authority.client("dcm", "watchers"), "", true)).To(Equal(codes.PermissionDenied))
		Expect(code(authority.client("dcm", "watchers"), "", false)).To(Equal(codes.OK))
		Expect(code(authority.client("root", "system:masters"), "", true)).To(Equal(codes.Unauthenticated), "an authority of rsync's callers makes no administrators")
		Expect(code(newAuthority().as("orchestrator", authority), "", true)).To(Equal(codes.Unavailable), "another authority's certificate")
		Expect(code(nil, tokenOf(ctx, namespace, deployer), true)).To(Equal(codes.Unavailable), "in the clear")

		By("answering whether it is healthy to everybody")
		health, err := grpc_health_v1.NewHealthClient(dial(address, anonymous)).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "installapp"})
		Expect(err).NotTo(HaveOccurred())
		Expect(health.GetStatus()).To(Equal(grpc_health_v1.HealthCheckResponse_SERVING))
	})
})

// revocableGuard accepts every token, which is the name of the caller, and allows everything until it is revoked.
type revocableGuard struct{ revoked atomic.Bool }

func (*revocableGuard) Authenticate(_ *http.Request, token string) (healthscopeapi.Caller, bool, error) {
	return healthscopeapi.Caller{Name: token}, true, nil
}

func (g *revocableGuard) Authorize(context.Context, healthscopeapi.Caller, healthscopeapi.Access) (bool, error) {
	return !g.revoked.Load(), nil
}

func newGuard() *access.Guard {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	guard, err := access.NewGuard(plane.Config(), client)
	Expect(err).NotTo(HaveOccurred())
	return guard
}

// newAccount creates a ServiceAccount and returns its name.
func newAccount(ctx context.Context, namespace string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "caller-"}}
	Expect(api.Create(ctx, account)).To(Succeed())
	return account.Name
}

func tokenOf(ctx context.Context, namespace, account string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	at := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(api.SubResource("token").Create(ctx, at, request)).To(Succeed())
	return request.Status.Token
}

// grant gives subjects a right in the whole cluster.
func grant(ctx context.Context, name string, rule rbacv1.PolicyRule, subjects ...rbacv1.Subject) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: name}
	Expect(api.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})).To(Succeed())
	Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})).To(Succeed())
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority() *authority {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "callers"}, key)
	Expect(err).NotTo(HaveOccurred())
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &authority{certificate, key, pool}
}

// issue returns a certificate for a server at loopback and for a client.
func (a *authority) issue(name string, organizations ...string) tls.Certificate {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	data, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: organizations}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
}

// server returns the TLS configuration of a server. Its callers have certificates of the authority, or none.
func (a *authority) server() *tls.Config {
	GinkgoHelper()
	return &tls.Config{Certificates: []tls.Certificate{a.issue("server")}, ClientCAs: a.pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12}
}

// client returns the credentials of a caller. subject is the name and the organizations in the certificate; without it, the caller
// has no certificate.
func (a *authority) client(subject ...string) credentials.TransportCredentials {
	GinkgoHelper()
	settings := &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
	if len(subject) > 0 {
		settings.Certificates = []tls.Certificate{a.issue(subject[0], subject[1:]...)}
	}
	return credentials.NewTLS(settings)
}

// as returns the credentials of a caller that has a certificate of this authority, and trusts servers of another one.
func (a *authority) as(name string, trusted *authority) credentials.TransportCredentials {
	GinkgoHelper()
	issued := a.issue(name)
	return credentials.NewTLS(&tls.Config{RootCAs: trusted.pool, MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &issued, nil
	}})
}
