package rsync_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

const (
	// hookTimeout is how long a hook may take.
	hookTimeout = 3 * time.Second
)

var (
	// plane is the API server of both clusters, without controllers, and api the administrator's client.
	plane *controlplane.ControlPlane
	api   client.Client
	// etcd holds the AppContexts. store reads and writes them as AppContexts, and raw as keys and values.
	etcd  *controlplane.Etcd
	store *appcontext.Store
	raw   *clientv3.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "rsync")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	var err error
	etcd, err = controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return etcd.Stop() })
	store, err = appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return store.Close() })
	raw, err = clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}, Logger: zap.NewNop()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return raw.Close() })
	plane, api = suite.Start(ctx, controlplane.Options{Name: "rsync"}, bundleCRD)
}, NodeTimeout(10*time.Minute))

// Before each spec, delete the events and the lock holder that other specs have left. A runner would continue the events. It would
// also wait for the handover of the lock, without end if its clock stands still.
var _ = BeforeEach(func(ctx SpecContext) {
	for _, prefix := range []string{"/activecontext/", "/healthscope/activecontext/", "/healthscope/lock-holder/"} {
		_, err := raw.Delete(ctx, prefix, clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
	}
})

// network is the connection to the clusters. The connection to edge02 can be cut.
type network struct {
	access fleet.Access

	mu sync.Mutex
	// cut is true while edge02 cannot be reached. asked is called before each attempt of a step in a cluster.
	cut   bool
	asked func()
}

func newNetwork() *network {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	return &network{access: fleet.Access{Config: plane.Config(), Client: client}, asked: func() {}}
}

// Access is rsync.Options.Access.
func (n *network) Access(cluster string) (fleet.Access, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked()
	return n.access, !n.cut || cluster != edge02
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercept lets all requests to the clusters pass through a function, which sends them on with next.
func (n *network) intercept(through func(r *http.Request, next http.RoundTripper) (*http.Response, error)) {
	next := n.access.Client.Transport
	n.access.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) { return through(r, next) })}
}

// count counts the requests to the clusters for which counts is true.
func (n *network) count(counts func(*http.Request) bool) *atomic.Int64 {
	sent := &atomic.Int64{}
	n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if counts(r) {
			sent.Add(1)
		}
		return next.RoundTrip(r)
	})
	return sent
}

// countPatches counts the ConfigMaps that are applied in a namespace.
func (n *network) countPatches(namespace string) *atomic.Int64 {
	return n.count(func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/"+namespace+"/configmaps/")
	})
}

// answer gives the same response to all requests for ConfigMaps, until healed is true.
func (n *network) answer(status metav1.Status) (healed *atomic.Bool) {
	healed = &atomic.Bool{}
	n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/configmaps/") && !healed.Load() {
			return refusal(r, status), nil
		}
		return next.RoundTrip(r)
	})
	return healed
}

// hold holds back the requests of a method for a name, until released is closed or their contexts end. reached holds a token when
// there has been one.
func (n *network) hold(method, name string) (reached, released chan struct{}) {
	reached, released = make(chan struct{}, 1), make(chan struct{})
	n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == method && path.Base(r.URL.Path) == name {
			select {
			case reached <- struct{}{}:
			default:
			}
			select {
			case <-released:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
	return reached, released
}

func (n *network) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// start runs a runner until the spec ends or stop is called. stop waits until the runner has ended. with changes the options.
func start(n *network, with ...func(*rsync.Options)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	o := rsync.Options{Store: store, Access: n.Access, Retry: wait.Backoff{Duration: 50 * time.Millisecond, Steps: 1}, HookTimeout: hookTimeout, Logger: GinkgoLogr}
	for _, change := range with {
		change(&o)
	}
	r := rsync.NewRunner(o)
	if o.Registry != nil {
		Expect(o.Registry.Register(r)).To(Succeed())
	}
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(r.Start(ctx)).To(Succeed())
	}()
	stop = func() {
		cancel()
		<-done
	}
	DeferCleanup(stop)
	return stop
}

// values are keys and values of etcd.
type values map[string]string

// put stores values.
func put(ctx context.Context, all values) {
	GinkgoHelper()
	for key, value := range all {
		_, err := raw.Put(ctx, key, value)
		Expect(err).NotTo(HaveOccurred())
	}
}

// stored returns the keys and values of a context that EMCO knows.
func stored(ctx context.Context, id string) values {
	GinkgoHelper()
	all := values{}
	for _, prefix := range []string{"/context/" + id + "/", "/activecontext/" + id + "/"} {
		response, err := raw.Get(ctx, prefix, clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
		for _, kv := range response.Kvs {
			all[string(kv.Key)] = string(kv.Value)
		}
	}
	return all
}

// recorded reads a recording of the values that EMCO's rsync leaves in etcd, and replaces the id of the context.
func recorded(name, id string) values {
	GinkgoHelper()
	data, err := os.ReadFile("../../healthscope/deploy/testdata/" + name)
	Expect(err).NotTo(HaveOccurred())
	all := values{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[strings.ReplaceAll(key, "/42/", "/"+id+"/")] = strings.ReplaceAll(value, `"42"`, `"`+id+`"`)
	}
	return all
}

// composite is a context for a spec.
type composite struct {
	id string
	values
}

// newComposite returns a context whose objects are in a namespace.
func newComposite(id, namespace string, apps ...string) *composite {
	c := &composite{id, values{}}
	c.values["/context/"+id+"/"] = fmt.Sprintf("%q", id)
	c.values["/context/"+id+"/meta/"] = fmt.Sprintf(`{"Namespace":%q,"Level":"0"}`, namespace)
	c.values["/context/"+id+"/app/instruction/order/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"apporder":["%s"]}`, strings.Join(apps, `","`)))
	for _, app := range apps {
		c.values["/context/"+id+"/app/"+app+"/"] = fmt.Sprintf("%q", app)
	}
	return c
}

// add adds resources of an app in a cluster. resources are pairs of a name and an object.
func (c *composite) add(app, cluster string, resources ...string) *composite {
	at := "/context/" + c.id + "/app/" + app + "/cluster/" + cluster + "/"
	c.values[at] = fmt.Sprintf("%q", cluster)
	var order []string
	for i := 0; i < len(resources); i += 2 {
		order = append(order, resources[i])
		c.values[at+"resource/"+resources[i]+"/"] = fmt.Sprintf("%q", resources[i+1])
	}
	c.values[at+"resource/instruction/order/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"resorder":["%s"]}`, strings.Join(order, `","`)))
	return c
}

// configMap is an object in YAML.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  k: v\n"
}

// statuses returns the statuses of the resources of a context in etcd, by app, cluster and name.
func statuses(ctx context.Context, id string) map[string]string {
	GinkgoHelper()
	s, err := store.Snapshot(ctx, id)
	Expect(err).NotTo(HaveOccurred())
	all := map[string]string{}
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				status, err := r.Status()
				Expect(err).NotTo(HaveOccurred())
				all[a.Name()+"/"+c.Name()+"/"+r.Name()] = string(status)
			}
		}
	}
	return all
}

// stateOf returns the state of a context, followed by "active" if work is left.
func stateOf(ctx context.Context, id string) string {
	GinkgoHelper()
	all := stored(ctx, id)
	state := all["/context/"+id+"/status/"]
	if _, active := all["/activecontext/"+id+"/"]; active {
		state += " active"
	}
	return state
}

// becomes waits until a context has a state and no work is left.
func becomes(ctx context.Context, id, word string) {
	GinkgoHelper()
	Eventually(stateOf).WithContext(ctx).WithArguments(id).Should(Equal(state(word)))
}

// ends adds an event to a context, and waits until it has ended with a state.
func ends(ctx context.Context, id string, event deploy.Event, word string) {
	GinkgoHelper()
	enqueue(ctx, id, event)
	becomes(ctx, id, word)
}

// instantiate instantiates a context, and terminate terminates it.
func instantiate(ctx context.Context, id string) {
	GinkgoHelper()
	ends(ctx, id, deploy.EventInstantiate, "Instantiated")
}

func terminate(ctx context.Context, id string) {
	GinkgoHelper()
	ends(ctx, id, deploy.EventTerminate, "Terminated")
}

func state(word string) string { return `{"Status":"` + word + `"}` }
