package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	members "github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// This file has the row about the deployment of contexts.

const (
	deployApps = 5
	// applyTime is the time that a member's API server takes to apply an object.
	applyTime = 5 * time.Millisecond
)

// deployBench has an etcd, and clusters whose API servers acknowledge everything.
type deployBench struct {
	store    *appcontext.Store
	endpoint string
	clusters []*deployCluster
}

// deployCluster is a member's API server.
type deployCluster struct {
	*httptest.Server

	name string
	// acknowledged is the number of objects that all clusters have acknowledged.
	acknowledged *atomic.Int64
	// dead is true while the server does not respond.
	dead atomic.Bool
	// last is the time at which it acknowledged the last object.
	last atomic.Pointer[time.Time]
}

func newDeployCluster(name string, acknowledged *atomic.Int64) *deployCluster {
	c := &deployCluster{name: name, acknowledged: acknowledged}
	c.Server = httptest.NewServer(c)
	return c
}

// ServeHTTP responds to discovery requests, and to the apply of an object with the object.
func (c *deployCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.dead.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // The server notices that the client has disconnected only after the body has been read.
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	resource := func(name, kind string) []metav1.APIResource {
		return []metav1.APIResource{{Name: name, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "patch"}}}
	}
	group := metav1.GroupVersionForDiscovery{GroupVersion: "k8splugin.io/v1alpha1", Version: "v1alpha1"}
	var answer any
	switch {
	case r.Method == http.MethodPatch:
		select {
		case <-r.Context().Done():
			return
		case <-time.After(applyTime):
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		now := time.Now()
		c.last.Store(&now)
		c.acknowledged.Add(1)
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			// The object is not decoded: the servers run in this process, and must take the same time as in the floor.
			body = fmt.Appendf(body[:0], `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":"default"}}`, path.Base(r.URL.Path))
		}
		_, _ = w.Write(body) // The client may have disconnected.
		return
	case r.URL.Path == "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/api/v1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: resource("configmaps", "ConfigMap")}
	case r.URL.Path == "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{Name: "k8splugin.io", Versions: []metav1.GroupVersionForDiscovery{group}, PreferredVersion: group}}}
	case strings.HasPrefix(r.URL.Path, "/apis/k8splugin.io/"):
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: group.GroupVersion, APIResources: resource("resourcebundlestates", "ResourceBundleState")}
	case r.URL.Path == "/apis/k8splugin.io":
		answer = metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup"}, Name: "k8splugin.io", Versions: []metav1.GroupVersionForDiscovery{group}, PreferredVersion: group}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // What is encoded are the types above.
}

func (b *bench) newDeployBench(ctx context.Context, clusters int, acknowledged *atomic.Int64) (*deployBench, error) {
	etcd, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{})
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, etcd.Stop)
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: requestLimit})
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, store.Close)
	d := &deployBench{store: store, endpoint: etcd.Endpoint()}
	for i := range clusters {
		c := newDeployCluster(fmt.Sprintf("provider+edge%02d", i), acknowledged)
		b.closers = append(b.closers, func() error { c.CloseClientConnections(); c.Close(); return nil })
		d.clusters = append(d.clusters, c)
	}
	return d, nil
}

// connections returns a function that returns the access to a cluster. Each cluster has its own connections.
func (d *deployBench) connections() (func(string) (members.Access, bool), error) {
	all := map[string]members.Access{}
	for _, c := range d.clusters {
		config := &rest.Config{Host: c.URL, QPS: -1}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, err
		}
		client.Transport = &http.Transport{MaxIdleConnsPerHost: deployApps}
		all[c.name] = members.Access{Config: config, Client: client}
	}
	return func(cluster string) (members.Access, bool) {
		access, ok := all[cluster]
		return access, ok
	}, nil
}

// newContext creates a context with that number of resources of each app in each cluster, and returns its ID.
func (d *deployBench) newContext(ctx context.Context, resources int) (string, error) {
	c := rsync.CompositeApp{Project: "bench", Name: "deploy", Version: "v1", DeploymentIntentGroup: "group"}
	for i := range deployApps {
		a := rsync.CompositeAppMember{Name: fmt.Sprintf("app%d", i), Manifests: []string{"m"}}
		for _, cluster := range d.clusters {
			a.Clusters = append(a.Clusters, cluster.name)
		}
		c.Apps = append(c.Apps, a)
	}
	var manifest strings.Builder
	for i := range resources {
		fmt.Fprintf(&manifest, "%s\n---\n", deployObject(i))
	}
	return rsync.CreateContext(ctx, d.store, c, func(string) ([]byte, error) { return []byte(manifest.String()), nil }, time.Now())
}

func deployObject(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm%d","namespace":"default"},"data":{"k":%q}}`, i, strings.Repeat("x", 1000))
}

// instantiate instantiates a context, and returns the time from the start of the runner until end returned.
func (d *deployBench) instantiate(ctx context.Context, id string, access func(string) (members.Access, bool), end func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := rsync.Enqueue(ctx, d.store, id, deploy.EventInstantiate, "", time.Now()); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	begin := time.Now()
	go func() {
		ended <- rsync.NewRunner(rsync.Options{Store: d.store, Access: access, Logger: logr.Discard()}).Start(ctx)
	}()
	err := end(ctx)
	took := time.Since(begin)
	cancel()
	return took, errors.Join(err, <-ended)
}

// instantiated returns a function that waits until a context is Instantiated and nothing is left to do.
func (d *deployBench) instantiated(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var is bool
		var failed error
		broken := d.store.WatchLevels(ctx, id, deploy.LifecycleLevels(), func() {
			s, err := d.store.Snapshot(ctx, id, deploy.LifecycleLevels()...)
			if err == nil {
				var l deploy.Lifecycle
				l, err = deploy.ReadLifecycle(s)
				is = l.Current == appcontext.StateInstantiated && !l.Active()
			}
			if failed = err; is || err != nil {
				cancel()
			}
		})
		if is {
			return nil
		}
		return cmp.Or(failed, broken)
	}
}

// acknowledged returns a function that waits until the clusters have acknowledged that number of objects.
func (d *deployBench) acknowledged(want int64) func(context.Context) error {
	return func(ctx context.Context) error {
		for d.clusters[0].acknowledged.Load() < want {
			if err := pause(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
}

// operations returns the number of Range, Txn and Put requests that etcd has handled.
func (d *deployBench) operations(ctx context.Context) (float64, error) {
	m, err := scrape(ctx, http.DefaultClient, d.endpoint+"/metrics")
	return m.sum("grpc_server_handled_total", "grpc_method=Range") + m.sum("grpc_server_handled_total", "grpc_method=Txn") + m.sum("grpc_server_handled_total", "grpc_method=Put"), err
}

// bare returns the time of the floor: client-go applies the same objects in the same order, with a ConfigMap in place of the
// bundle, and records nothing.
func (d *deployBench) bare(ctx context.Context, resources int) (time.Duration, error) {
	group, ctx := errgroup.WithContext(ctx)
	access, err := d.connections()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, c := range d.clusters {
		a, _ := access(c.name)
		client, err := dynamic.NewForConfigAndClient(a.Config, a.Client)
		if err != nil {
			return 0, err
		}
		for range deployApps {
			group.Go(func() error {
				for i := range resources + 1 { // One more, for the bundle.
					o := &unstructured.Unstructured{}
					if err := json.Unmarshal([]byte(deployObject(i)), &o.Object); err != nil {
						return err
					}
					if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "bench"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	err = group.Wait()
	return time.Since(begin), err
}

// latest returns the time from begin until the last acknowledgement of each cluster that is not dead.
func (d *deployBench) latest(begin time.Time) []time.Duration {
	var all []time.Duration
	for _, c := range d.clusters {
		if !c.dead.Load() {
			all = append(all, c.last.Load().Sub(begin))
		}
	}
	return all
}

// peak runs do, and returns the peak of the heap above its size before, in MiB. It reads the size every 20 ms.
func peak(do func() error) (float64, error) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	})
	err := do()
	close(stop)
	watching.Wait()
	return float64(most-before) / (1 << 20), err
}

func measureDeploy(ctx context.Context, b *bench) ([]figure, error) {
	const resources = 15
	var acknowledged atomic.Int64
	d, err := b.newDeployBench(ctx, b.options.scaled(50, 3), &acknowledged)
	if err != nil {
		return nil, err
	}
	access, err := d.connections()
	if err != nil {
		return nil, err
	}
	id, err := d.newContext(ctx, resources)
	if err != nil {
		return nil, err
	}
	total := float64(deployApps * len(d.clusters) * resources)
	var took, floor []float64
	var operations, sent float64
	for range 3 {
		bare, err := d.bare(ctx, resources)
		if err != nil {
			return nil, err
		}
		before, err := d.operations(ctx)
		if err != nil {
			return nil, err
		}
		acknowledged.Store(0)
		whole, err := d.instantiate(ctx, id, access, d.instantiated(id))
		if err != nil {
			return nil, err
		}
		after, err := d.operations(ctx)
		if err != nil {
			return nil, err
		}
		took, floor = append(took, 1000*whole.Seconds()), append(floor, 1000*bare.Seconds())
		operations, sent = (after-before)/total, float64(acknowledged.Load())/total
	}
	figures := []figure{
		{name: "requests per unchanged resource", value: sent, peer: "2", target: new(1.1)},
		{name: "etcd operations per resource", value: operations, peer: "15", target: new(2.0)},
		{name: "Instantiated ms", value: median(took), floor: median(floor), times: 1.3, samples: took, floorSamples: floor},
	}
	dead, err := d.besideADeadCluster(ctx, access, resources)
	if err != nil {
		return nil, err
	}
	big, err := d.newContext(ctx, b.options.scaled(10000/deployApps/len(d.clusters), resources))
	if err != nil {
		return nil, err
	}
	memory, err := peak(func() error {
		_, err := d.instantiate(ctx, big, access, d.instantiated(big))
		return err
	})
	return append(figures, dead, figure{name: "10,000 resources MiB", value: memory, target: new(200.0)}), err
}

// besideADeadCluster measures when the other clusters acknowledge their last object while one cluster does not respond. The
// floor is the same time of all clusters while all respond.
func (d *deployBench) besideADeadCluster(ctx context.Context, access func(string) (members.Access, bool), resources int) (figure, error) {
	var all, others []time.Duration
	for _, dead := range []bool{false, true} {
		d.clusters[0].dead.Store(dead)
		d.clusters[0].acknowledged.Store(0)
		id, err := d.newContext(ctx, resources)
		if err != nil {
			return figure{}, err
		}
		living := len(d.clusters)
		if dead {
			living--
		}
		want := int64(deployApps * living * (resources + 1))
		begin := time.Now()
		if _, err := d.instantiate(ctx, id, access, d.acknowledged(want)); err != nil {
			return figure{}, err
		}
		if dead {
			others = d.latest(begin)
		} else {
			all = d.latest(begin)
		}
	}
	d.clusters[0].dead.Store(false)
	f := latency("beside a dead cluster ", others, 1.1, all)
	return f, nil
}
