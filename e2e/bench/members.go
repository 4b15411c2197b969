package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// This file simulates the API servers of many clusters, with only the requests that a hub sends: they list and watch bundles and
// the Lease of the monitor, over TLS, with resource versions and bookmarks
// (https://kubernetes.io/docs/reference/using-api/api-concepts/).

const (
	// memberToken is the token that all members require.
	memberToken = "member-token"
	// history is the minimum number of changes that a collection keeps. A watch from an earlier version must list again.
	history = 2048
	// bookmarkInterval is the interval of the bookmarks of a watch, about that of a kube-apiserver.
	bookmarkInterval = time.Minute
)

// member is the API server of one cluster.
type member struct {
	name            string
	server          *httptest.Server
	bundles, leases *collection
}

// startMember starts the API server of a cluster. Its port is outside the ephemeral range, from which programs that start later
// may have received a port.
func startMember(name string, port int) (*member, error) {
	m := &member{name: name, bundles: newCollection(name, "k8splugin.io/v1alpha1", "ResourceBundleState"), leases: newCollection(name, "coordination.k8s.io/v1", "Lease")}
	var listener net.Listener
	var err error
	for listener == nil && port < 32000 {
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // It does not wait.
		port += 100
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the API server of cluster %q: %w", name, err)
	}
	mux := http.NewServeMux()
	for resource, c := range map[string]*collection{"k8splugin.io/v1alpha1/%sresourcebundlestates": m.bundles, "coordination.k8s.io/v1/%sleases": m.leases} {
		for _, namespace := range []string{"", "namespaces/{namespace}/"} {
			mux.HandleFunc("GET /apis/"+fmt.Sprintf(resource, namespace), c.serve)
		}
	}
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && r.Header.Get("Authorization") != "Bearer "+memberToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	_ = m.server.Listener.Close()
	m.server.Listener = listener
	m.server.EnableHTTP2 = true
	m.server.Config.ErrorLog = log.New(io.Discard, "", 0) // The hub handles broken connections.
	m.server.StartTLS()
	return m, nil
}

// authority returns the certificate of the authority of the server, as PEM.
func (m *member) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
}

// stop stops the API server.
func (m *member) stop() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// renew renews the Lease of the cluster's monitor.
func (m *member) renew(name types.NamespacedName, now time.Time) {
	m.leases.put(name, nil, fmt.Appendf(nil, `,"spec":{"holderIdentity":"monitor","leaseDurationSeconds":15,"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro)))
}

// sharedBundle is a bundle in JSON, without its name and version. All members share it.
type sharedBundle struct{ labels, rest []byte }

func shareBundle(b *k8spluginv1alpha1.ResourceBundleState) (s sharedBundle, err error) {
	if s.labels, err = json.Marshal(b.Labels); err == nil {
		s.rest, err = json.Marshal(map[string]any{"spec": b.Spec, "status": b.Status})
	}
	if err != nil {
		return s, fmt.Errorf("cannot encode bundle %q: %w", b.Name, err)
	}
	s.rest[0] = ',' // The rest follows the metadata in the JSON of an object.
	return s, nil
}

// change is a change of an object. The JSON of the object has two parts: its metadata, and the rest, which many objects share.
type change struct {
	kind       string
	name       types.NamespacedName
	head, rest []byte
}

// collection holds the objects of one kind and their last changes. Each change increments the version, which begins at 1.
type collection struct {
	cluster, apiVersion, kind string

	mu      sync.Mutex // guards the rest
	objects map[types.NamespacedName]change
	version int
	changes []change // The last ones, the oldest first.
	changed chan struct{}
}

func newCollection(cluster, apiVersion, kind string) *collection {
	return &collection{cluster: cluster, apiVersion: apiVersion, kind: kind, objects: map[types.NamespacedName]change{}, version: 1, changed: make(chan struct{})}
}

// put creates or replaces an object.
func (c *collection) put(name types.NamespacedName, labels, rest []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := "MODIFIED"
	if _, ok := c.objects[name]; !ok {
		kind = "ADDED"
	}
	if labels == nil {
		labels = []byte("{}")
	}
	head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d","labels":%s}`,
		c.apiVersion, c.kind, name.Namespace, name.Name, c.cluster+"/"+name.String(), c.version+1, labels)
	c.objects[name] = change{kind, name, head, rest}
	c.happened(c.objects[name])
}

// remove removes an object that exists.
func (c *collection) remove(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := c.objects[name]
	gone.kind = "DELETED"
	delete(c.objects, name)
	c.happened(gone)
}

func (c *collection) happened(one change) {
	c.version++
	if len(c.changes) >= 2*history {
		c.changes = slices.Clone(c.changes[history:])
	}
	c.changes = append(c.changes, one)
	close(c.changed)
	c.changed = make(chan struct{})
}

// since returns the changes after a version, the version that results from them, and a channel that is closed with the next
// change. ok is false when the collection no longer keeps the changes.
func (c *collection) since(version int) (changes []change, now int, more <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	behind := c.version - version
	if behind < 0 || behind > len(c.changes) {
		return nil, 0, nil, false
	}
	return slices.Clone(c.changes[len(c.changes)-behind:]), c.version, c.changed, true
}

// list returns all objects as ADDED changes, and the version.
func (c *collection) list() (all []change, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		o.kind = "ADDED"
		all = append(all, o)
	}
	return all, c.version
}

// serve responds to a list or a watch. A hub selects one namespace or all, and never selects by labels.
func (c *collection) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	passes := func(o change) bool {
		name := q.Get("fieldSelector")
		return (r.PathValue("namespace") == "" || r.PathValue("namespace") == o.name.Namespace) && (name == "" || name == "metadata.name="+o.name.Name)
	}
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
		if err != nil {
			seconds = 3600
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(seconds)*time.Second)
		defer cancel()
		from, _ := strconv.Atoi(q.Get("resourceVersion"))
		c.watch(ctx, w, from, q.Get("sendInitialEvents") == "true", passes)
		return
	}
	all, version := c.list()
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, c.kind, c.apiVersion, version)
	comma := ""
	for _, o := range all {
		if passes(o) {
			_, _ = w.Write(slices.Concat([]byte(comma), o.head, o.rest)) // The hub may have disconnected.
			comma = ","
		}
	}
	_, _ = io.WriteString(w, "]}")
}

// watch writes the changes after a version until ctx ends. With initial, or for version 0, it writes all objects first.
func (c *collection) watch(ctx context.Context, w http.ResponseWriter, version int, initial bool, passes func(change) bool) {
	var begin []change
	if initial || version == 0 {
		begin, version = c.list()
	}
	var out bytes.Buffer
	events := func(all []change) {
		for _, o := range all {
			if passes(o) {
				fmt.Fprintf(&out, `{"type":%q,"object":%s%s}`+"\n", o.kind, o.head, o.rest)
			}
		}
	}
	bookmark := func(annotations string) {
		fmt.Fprintf(&out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}}`+"\n", c.kind, c.apiVersion, version, annotations)
	}
	events(begin)
	if initial {
		bookmark(`,"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}`)
	}
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for {
		changes, now, more, ok := c.since(version)
		if !ok {
			out.WriteString(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}` + "\n")
		}
		version = now
		events(changes)
		if _, err := out.WriteTo(w); err != nil || !ok {
			return
		}
		_ = http.NewResponseController(w).Flush() // The next write fails if the hub has disconnected.
		select {
		case <-more:
		case <-ticker.C:
			bookmark("")
		case <-ctx.Done():
			return
		}
	}
}
