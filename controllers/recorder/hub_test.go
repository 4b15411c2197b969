package recorder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// home is the name of the hub's own cluster, and edge that of its member, which is the same API server.
	home = "west+bonn"
	edge = "west+berlin"
)

// hub is a hub with a recorder that runs until it is stopped.
type hub struct {
	*fleet.View

	registry *prometheus.Registry
	clock    *testingclock.FakePassiveClock
	// reads counts the requests for single bundles.
	reads atomic.Int64
	stop  func()
}

// hubOptions configure a hub.
type hubOptions struct {
	// namespace is the namespace of the Secrets of clusters and of the hub's Lease.
	namespace string
	// wire is the connection to the member; nil when the hub has none.
	wire *faults.Wire
	// refuse makes reading single bundles fail while it is set.
	refuse *atomic.Bool
	store  appcontext.Options
	// readyKeys is recorder.Options.ReadyKeys.
	readyKeys bool
}

// run runs a hub until it is stopped or the spec is over, and returns when it has read the bundles of its own cluster.
func run(ctx context.Context, o hubOptions) *hub { //nolint:contextcheck // The hub lives until the spec is cleaned up.
	GinkgoHelper()
	h := &hub{registry: prometheus.NewRegistry(), clock: testingclock.NewFakePassiveClock(time.Now())}
	config := plane.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=") && strings.HasSuffix(r.URL.Path, "/resourcebundlestates") {
				h.reads.Add(1)
				if o.refuse != nil && o.refuse.Load() {
					return nil, apierrors.NewServiceUnavailable("refused by the test")
				}
			}
			return next.RoundTrip(r)
		})
	})
	mgr, err := ctrl.NewManager(config, suite.ManagerOptions())
	Expect(err).NotTo(HaveOccurred())
	setup := fleet.Options{ClusterName: home, Policy: healthscope.DefaultPolicy()}
	if o.wire != nil {
		setup.Liveness = &fleet.Liveness{MonitorNamespace: o.namespace, Timeout: 2 * time.Second}
		setup.Members = &fleet.Members{Namespace: o.namespace, Parse: func([]byte) (*rest.Config, error) {
			member := plane.Config()
			member.Host = "https://" + o.wire.Addr()
			return member, nil
		}}
	}
	h.View, err = fleet.Setup(mgr, setup)
	Expect(err).NotTo(HaveOccurred())
	if len(o.store.Endpoints) == 0 {
		o.store.Endpoints = []string{etcd.Endpoint()}
	}
	store, err := appcontext.Open(o.store)
	Expect(err).NotTo(HaveOccurred())
	lease := types.NamespacedName{Namespace: o.namespace, Name: "healthscope-controller"}
	Expect(recorder.Setup(mgr, recorder.Options{View: h.View, Store: store, Lease: lease, Registry: h.registry, Clock: h.clock, ReadyKeys: o.readyKeys})).To(Succeed())
	life, cancel := suite.Lasting()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(life) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "the manager ends")
		Expect(store.Close()).To(Succeed())
	})
	DeferCleanup(h.stop)
	within, done := context.WithTimeout(ctx, suite.Timeout)
	defer done()
	Expect(h.WaitSynced(within)).To(Succeed())
	return h
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// metric returns a metric as it is scraped; zero when it has no such series.
func (h *hub) metric(name, label string) func() float64 {
	return func() float64 {
		all, err := h.registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, family := range all {
			for _, m := range family.GetMetric() {
				if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
					return m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return 0
	}
}

// lint returns the problems of the metrics.
func (h *hub) lint() []string {
	problems, err := testutil.GatherAndLint(h.registry)
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, p := range problems {
		all = append(all, p.Metric+": "+p.Text)
	}
	return all
}

// newHome creates a namespace with a Lease that identifies a hub.
func newHome(ctx context.Context) string {
	GinkgoHelper()
	namespace := newNamespace(ctx)
	Expect(api.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-controller"}})).To(Succeed())
	return namespace
}

// newMember creates the Secret of the member. The hub may read only one namespace of it.
func newMember(ctx context.Context, secrets, namespace string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secrets, Name: "berlin", Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"},
			Annotations: map[string]string{corev1alpha2.AnnotationClusterName: edge, corev1alpha2.AnnotationNamespaces: namespace},
		},
		Data: map[string][]byte{corev1alpha2.KubeconfigKey: []byte("the test's own")},
	}
	Expect(api.Create(ctx, secret)).To(Succeed())
	return secret
}

// site is a context with apps in clusters.
type site struct {
	id   string
	ac   *appcontext.AppContext
	root appcontext.Handle
}

// newSite creates a context with the app sink in clusters.
func newSite(ctx context.Context, clusters ...string) *site {
	GinkgoHelper()
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(store.Close)
	s := &site{ac: appcontext.NewAppContext(store)}
	s.id = s.ac.InitAppContext()
	s.root, err = s.ac.CreateCompositeApp(ctx)
	Expect(err).NotTo(HaveOccurred())
	s.addApp(ctx, "sink", clusters...)
	return s
}

// addApp adds an app in clusters.
func (s *site) addApp(ctx context.Context, name string, clusters ...string) {
	GinkgoHelper()
	app, err := s.ac.AddApp(ctx, s.root, name)
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range clusters {
		_, err := s.ac.AddCluster(ctx, app, cluster)
		Expect(err).NotTo(HaveOccurred())
	}
}

// bundle returns the name of the bundles of the app.
func (s *site) bundle() string { return s.id + "-sink" }

// key returns the key at which the bundle of a cluster is saved.
func (s *site) key(cluster string) string {
	return fmt.Sprintf("/context/%s/app/sink/cluster/%s/status/", s.id, cluster)
}

// rsync saves a status as EMCO's rsync does.
func (s *site) rsync(ctx context.Context, cluster, status string) {
	GinkgoHelper()
	value, err := json.Marshal(status)
	Expect(err).NotTo(HaveOccurred())
	_, err = raw.Put(ctx, s.key(cluster), string(value))
	Expect(err).NotTo(HaveOccurred())
}

// saved returns the saved text of the bundle of the app sink in a cluster; empty when nothing is saved.
func (s *site) saved(ctx context.Context, cluster string) func() string {
	return s.savedFor(ctx, "sink", cluster)
}

// savedFor is saved for another app.
func (s *site) savedFor(ctx context.Context, app, cluster string) func() string {
	return func() string {
		response, err := raw.Get(ctx, fmt.Sprintf("/context/%s/app/%s/cluster/%s/status/", s.id, app, cluster))
		if err != nil || len(response.Kvs) == 0 {
			return ""
		}
		var text string
		Expect(json.Unmarshal(response.Kvs[0].Value, &text)).To(Succeed(), "one JSON string")
		return text
	}
}

// revision returns the latest revision of etcd at which a key of the context was written.
func (s *site) revision(ctx context.Context) func() int64 {
	return func() int64 {
		latest := int64(0)
		for _, prefix := range []string{"/context/", "/healthscope/context/"} {
			response, err := raw.Get(ctx, prefix+s.id+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
			Expect(err).NotTo(HaveOccurred())
			for _, kv := range response.Kvs {
				latest = max(latest, kv.ModRevision)
			}
		}
		return latest
	}
}

// newBundle creates a bundle with a status as a monitor writes it.
func newBundle(ctx context.Context, namespace, name, id, status string) *k8spluginv1alpha1.ResourceBundleState {
	GinkgoHelper()
	labels := map[string]string{k8spluginv1alpha1.LabelDeploymentID: id}
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	Expect(api.Create(ctx, b)).To(Succeed())
	if status != "" {
		fill(ctx, b, status)
	}
	return b
}

// fill writes the status of a bundle.
func fill(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, status string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":%s}`, status)
	Expect(api.Status().Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// annotate changes the version of a bundle, but not its status.
func annotate(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"a":%q}}}`, value)
	Expect(api.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// newRaw returns a client for the keys and values of an etcd.
func newRaw(endpoint string) *clientv3.Client {
	GinkgoHelper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(client.Close)
	return client
}

// rawKeys returns the keys in etcd under a prefix.
func rawKeys(ctx context.Context, prefix string) []string {
	GinkgoHelper()
	response, err := raw.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	Expect(err).NotTo(HaveOccurred())
	var keys []string
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}
