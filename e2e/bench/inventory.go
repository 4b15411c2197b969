package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	aaiclient "github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/e2e/installation"
)

// This file has the row about A&AI.

const (
	// stateLabel is the label in A&AI that holds the state of a resource.
	stateLabel = "healthscope.core.oam.dev/status"
	// floorOwner is the data-owner of the floor's documents.
	floorOwner = "bench"
	// pageSize is the number of documents that HealthScope reads from A&AI with one request.
	pageSize = 500
	// loneAfter is the minimum time between single changes: changes of a tenant at shorter intervals share requests.
	loneAfter = 300 * time.Millisecond
	// changesPerSecond is the rate of the measurement with many changes.
	changesPerSecond = 100
)

// inventory holds the applications whose resources go to A&AI.
type inventory struct {
	apps []app
	// documents are the IDs of the pods' documents in A&AI.
	documents map[types.NamespacedName]string
	// floor is the hop of one document. ways are the floor of many changes, with one for each application.
	floor hop
	ways  []*sharedWay
}

// inventoryTenant is the tenant of the resources in A&AI.
var inventoryTenant = aai.Tenant{CloudOwner: installation.CloudOwner, CloudRegionID: installation.CloudRegionID, TenantID: installation.TenantID}

// tapInventory starts a proxy before A&AI that records the states that A&AI acknowledges, and returns its URL.
func (p *plane) tapInventory(target string) (string, error) {
	to, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("cannot listen in on %q: %w", target, err)
	}
	type bodyKey struct{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(response *http.Response) error {
			if body, ok := response.Request.Context().Value(bodyKey{}).([]byte); ok && response.StatusCode < http.StatusMultipleChoices {
				p.noteWrites(response.Request.URL.Path, body)
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	}))
	p.closers = append(p.closers, func() error { server.Close(); return nil })
	return server.URL, nil
}

var statePattern = regexp.MustCompile(regexp.QuoteMeta(stateLabel) + `=(\w+)`)

// noteWrites puts the states in a request, which may be a bulk request, on the board.
func (p *plane) noteWrites(uri string, body []byte) {
	type operation struct {
		URI  string          `json:"uri"`
		Body json.RawMessage `json:"body"`
	}
	var bulk struct {
		Operations []operation `json:"operations"`
	}
	if err := json.Unmarshal(body, &bulk); err != nil || len(bulk.Operations) == 0 {
		bulk.Operations = []operation{{uri, body}}
	}
	for _, o := range bulk.Operations {
		if state := statePattern.FindSubmatch(o.Body); state != nil {
			p.acknowledged.put(types.NamespacedName{Name: path.Base(o.URI)}, string(state[1]))
		}
	}
}

// needInventory prepares applications whose resources are in A&AI.
func (b *bench) needInventory(ctx context.Context) error {
	if b.inventory != nil {
		return b.bundles.quiet(ctx, quietTime)
	}
	for _, need := range []func(context.Context) error{b.needBundles, b.needScopes} {
		if err := need(ctx); err != nil {
			return err
		}
	}
	in := &inventory{documents: map[types.NamespacedName]string{}}
	for i := range b.options.scaled(20, 5) {
		in.apps = append(in.apps, app{namespace: inventoryNamespace, name: fmt.Sprintf("%d-web", 9000+i), pods: 10, configMaps: 5})
	}
	if err := b.createApps(ctx, in.apps); err != nil {
		return err
	}
	if err := b.createBundles(ctx, in.apps); err != nil {
		return err
	}
	s := scope{namespace: inventoryNamespace, name: "inventory", apps: in.apps}
	if err := b.create(ctx, s.object()); err != nil {
		return err
	}
	b.inventory, b.apps, b.scopes = in, append(b.apps, in.apps...), append(b.scopes, s)
	if err := b.stillRight(ctx); err != nil {
		return err
	}
	if err := b.awaitPods(ctx); err != nil {
		return err
	}
	return b.newInventoryFloor(ctx)
}

// awaitPods waits until A&AI holds every pod as Ready, and stores the IDs of their documents.
func (b *bench) awaitPods(ctx context.Context) error {
	clear(b.inventory.documents)
	want := 10 * len(b.inventory.apps)
	return poll(ctx, fmt.Sprintf("A&AI to hold %d pods, all Ready", want), func(ctx context.Context) (bool, error) {
		objects, err := b.hs.Objects(ctx)
		for _, o := range objects {
			if o.Body["kind"] == "Pod" && o.Body["data-owner"] != floorOwner && o.Label(stateLabel) == podState(false) {
				b.inventory.documents[types.NamespacedName{Namespace: fmt.Sprint(o.Body["namespace"]), Name: fmt.Sprint(o.Body["name"])}] = path.Base(o.URI)
			}
		}
		return len(b.inventory.documents) == want, err
	})
}

// inventoryClient returns a client for A&AI.
func (p *plane) inventoryClient() (*aaiclient.Client, error) {
	c, err := aaiclient.New(aaiclient.Options{BaseURL: p.hs.AAI, AppID: "bench", Credentials: p.hs.Credentials})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for A&AI: %w", err)
	}
	p.closers = append(p.closers, func() error { c.Close(); return nil })
	return c, nil
}

// putDocument writes a document of another owner into A&AI.
func putDocument(ctx context.Context, c *aaiclient.Client, id, owner string) (aai.Key, error) {
	key := aai.Key{Tenant: inventoryTenant, ID: id}
	return key, c.Write(ctx, aaiclient.Write{Op: aai.OpPut, Key: key, Document: aai.Document{
		ID: id, Name: id, Version: "v1", Kind: "Pod", Namespace: inventoryNamespace, Selflink: "http://" + owner, DataOwner: owner, DataSource: "local",
		Labels: []string{stateLabel + "=" + podState(true)},
	}})
}

// newInventoryFloor creates the floor's documents in A&AI, and its objects for many changes.
func (b *bench) newInventoryFloor(ctx context.Context) error {
	c, err := b.inventoryClient()
	if err != nil {
		return err
	}
	if b.inventory.floor, err = documentHop(ctx, c, "bench-floor"); err != nil {
		return err
	}
	f, err := b.needFloor(ctx)
	if err != nil {
		return err
	}
	for i := range b.inventory.apps {
		name := fmt.Sprintf("floor-aai-%d", i)
		w := &sharedWay{}
		for pod := range b.inventory.apps[i].pods {
			h, err := f.pod(ctx, fmt.Sprintf("%s-%d", name, pod))
			if err != nil {
				return err
			}
			w.pods = append(w.pods, h)
		}
		bundle, err := f.bundle(ctx, name)
		if err != nil {
			return err
		}
		document, err := documentHop(ctx, c, "bench-"+name)
		if err != nil {
			return err
		}
		w.rest = []hop{bundle, document}
		b.inventory.ways = append(b.inventory.ways, w)
	}
	return nil
}

// documentHop creates a document in A&AI, and returns the hop that reads and updates it: an update needs the resource version.
func documentHop(ctx context.Context, c *aaiclient.Client, id string) (hop, error) {
	key, err := putDocument(ctx, c, id, floorOwner)
	crash := true
	return func(ctx context.Context) (time.Duration, error) {
		crash = !crash
		begin := time.Now()
		d, _, err := c.GetK8sResource(ctx, key)
		if err != nil {
			return 0, err
		}
		d.Labels = []string{stateLabel + "=" + podState(crash)}
		err = c.Write(ctx, aaiclient.Write{Op: aai.OpUpdate, Key: key, Document: d})
		return time.Since(begin), err
	}, err
}

// sharedWay is the way from the pods of an application to A&AI, made with clients only. The rest of the way after the pod is one at
// a time: changes that come meanwhile share the next one, as the monitor and the controller let them.
type sharedWay struct {
	pods, rest []hop
	// changed is the number of changes of pods.
	changed atomic.Int64

	mu           sync.Mutex // guards the hops of rest, and the number of changes that A&AI has acknowledged
	acknowledged int64
}

// change changes a pod, and returns the time until A&AI has acknowledged the change.
func (w *sharedWay) change(ctx context.Context, pod int) (time.Duration, error) {
	begin := time.Now()
	if _, err := w.pods[pod](ctx); err != nil {
		return 0, err
	}
	number := w.changed.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acknowledged < number {
		changed := w.changed.Load()
		for _, h := range w.rest {
			if _, err := h(ctx); err != nil {
				return 0, err
			}
		}
		w.acknowledged = changed
	}
	return time.Since(begin), nil
}

// target returns the pod of the i-th change.
func (in *inventory) target(i int) podOf {
	return podOf{in.apps[i%len(in.apps)], i / len(in.apps) % 10}
}

// toInventory makes a pod crash, or lets it recover, and returns how long it took until A&AI acknowledged the state.
func (b *bench) toInventory(ctx context.Context, t podOf, crash bool) (time.Duration, error) {
	want := podState(crash)
	seen := b.acknowledged.expect(fmt.Sprintf("A&AI to acknowledge pod %q", t.name()), checks[string]{{Name: b.inventory.documents[t.name()]}: func(state string) string {
		if state == want {
			return ""
		}
		return fmt.Sprintf("it is %s, not %s", state, want)
	}})
	begin := time.Now()
	if err := b.crash(ctx, t.app, t.pod, crash); err != nil {
		return 0, err
	}
	at, err := seen(ctx)
	return at.Sub(begin), err
}

func measureInventory(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.needInventory(ctx); err != nil {
		return nil, err
	}
	hops, err := b.bundleHops(ctx)
	if err != nil {
		return nil, err
	}
	in := b.inventory
	lone, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		if err := pause(ctx, loneAfter); err != nil {
			return 0, err
		}
		t := in.target(i)
		b.crashed[t] = !b.crashed[t]
		return b.toInventory(ctx, t, b.crashed[t])
	}, append(hops[:2:2], in.floor)...)
	if err != nil {
		return nil, err
	}
	length := b.options.scaledTime(20*time.Second, time.Second)
	bare, err := atRate(ctx, changesPerSecond, length, map[podOf]bool{}, in.target, func(ctx context.Context, t podOf, _ bool) (time.Duration, error) {
		return in.ways[slices.Index(in.apps, t.app)].change(ctx, t.pod)
	})
	if err != nil {
		return nil, err
	}
	last, err := b.lastRequest(ctx)
	if err != nil {
		return nil, err
	}
	many, err := atRate(ctx, changesPerSecond, length, b.crashed, in.target, b.toInventory)
	if err != nil {
		return nil, err
	}
	requests, _, _, err := b.requestsSince(ctx, last)
	if err != nil {
		return nil, err
	}
	alone, rate := latency("", lone, 5, floors...), latency("at 100 per s ", many, 0, bare)
	alone.peer, rate.peer, rate.target = "30000 (notify interval)", "30000 (notify interval)", new(1000.0)
	if err := b.heal(ctx); err != nil {
		return nil, err
	}
	return []figure{alone, rate, {name: "at 100 per s requests/change", value: float64(requests) / float64(len(many))}}, b.awaitPods(ctx)
}

// lastRequest returns the number of the last request that A&AI has received; 0 when there is none.
func (b *bench) lastRequest(ctx context.Context) (uint64, error) {
	all, err := b.hs.Requests(ctx, 0)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Seq, nil
}

// requestsSince counts the requests that A&AI has received after the request last: all, those that read a page of documents, and
// writes.
func (b *bench) requestsSince(ctx context.Context, last uint64) (all, pages, writes int, err error) {
	received, err := b.hs.Requests(ctx, last)
	for _, r := range received {
		all++
		path, _, _ := strings.Cut(r.Path, "?")
		switch {
		case r.Method != http.MethodGet:
			writes++
		case strings.HasSuffix(path, "/k8s-resources"):
			pages++
		}
	}
	return all, pages, writes, err
}

// syncedDocuments returns the number of documents in A&AI that are HealthScope's, and not the load generator's.
func (b *bench) syncedDocuments(ctx context.Context) (n int, err error) {
	objects, err := b.hs.Objects(ctx)
	for _, o := range objects {
		if o.Body["data-owner"] != floorOwner {
			n++
		}
	}
	return n, err
}

// awaitSynced waits until the controller reports that number of documents in A&AI as synced.
func (b *bench) awaitSynced(ctx context.Context, documents int) error {
	return poll(ctx, fmt.Sprintf("the controller to find %d documents in A&AI", documents), func(ctx context.Context) (bool, error) {
		m, err := scrape(ctx, http.DefaultClient, b.hs.Metrics)
		return int(m.sum("healthscope_aai_objects", "state=synced")) == documents, err
	})
}
