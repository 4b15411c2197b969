package rsync_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
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
	http, err := rest.HTTPClientFor(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	return &network{access: fleet.Access{Config: plane.Config(), Client: http}, asked: func() {}}
}

// Access is rsync.Options.Access.
func (n *network) Access(cluster string) (fleet.Access, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked()
	return n.access, !n.cut || cluster != edge02
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

func state(word string) string { return `{"Status":"` + word + `"}` }
