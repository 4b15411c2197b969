package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/lru"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/status"
)

// parameterDialect is the query parameter that selects the responses of EMCO 22.12.
const parameterDialect = "dialect"

const (
	// maxDetail is the maximum number of responses with whole objects in progress: each can use 100 MiB of memory meanwhile.
	maxDetail = 4
	// maxWaiting is the maximum number of requests that wait for that. More would take the place of requests with immediate responses.
	maxWaiting = 32
	// maxReads is the maximum number of bundles that are read from clusters at once for one response, and bundleReadTimeout
	// limits how long that takes. A response leaves out what has not been read by then.
	maxReads          = 16
	bundleReadTimeout = 10 * time.Second
)

// Contexts is the source of AppContexts: an appcontext.Cache.
type Contexts interface {
	// View returns the view of a subject, as appcontext.Cache.View does.
	View(ctx context.Context, subject appcontext.DeploymentRef, instance string) (appcontext.View, error)
}

// Clusters is the source of the bundles that the hub observes in its clusters.
type Clusters interface {
	// Bundle returns the bundle with a name in a cluster; of several, the one in the namespace, unless namespace is empty. It returns false
	// when the hub cannot reach the cluster and has not observed the bundle before; the Observation then has the reason.
	Bundle(cluster, name, namespace string) (Observation, bool)
	// Instance returns all bundles whose label status.InstanceLabel has a value, and the sorted names of the clusters that have never
	// been read, where there may be more.
	Instance(id string) (found []Observation, unread []string)
}

// Observation is a bundle as the hub observes it.
type Observation struct {
	status.Report
	// Read reads the whole bundle from its cluster; nil when there is none, or it cannot be read.
	Read func(ctx context.Context) (*status.Bundle, error)
}

// DocumentsOptions are the inputs of status documents.
type DocumentsOptions struct {
	// Contexts is the source of AppContexts. Without it, the response to requests that need them is 503.
	Contexts Contexts
	// Clusters is the source of bundles. Required.
	Clusters Clusters
	// Policy holds the time limits of health judgements of the installation.
	Policy healthscope.Policy
	// HealthChecks are the rules of users, for bundles that contexts hold; may be nil.
	HealthChecks rules.UserRules
}

// Documents makes status documents. It caches decoded contexts. It is safe for concurrent use, and handlers can share it.
type Documents struct {
	DocumentsOptions

	// mu guards the steps of cacheOf; views holds a viewCache for each subject and context.
	mu                          sync.Mutex
	views                       *lru.Cache
	coalescer                   coalescer
	detailTokens, waitingTokens chan struct{}
}

// NewDocuments returns a Documents.
func NewDocuments(o DocumentsOptions) *Documents {
	return &Documents{
		DocumentsOptions: o, views: lru.New(maxCachedViews), detailTokens: make(chan struct{}, maxDetail), waitingTokens: make(chan struct{}, maxWaiting),
	}
}

// Reset clears the cache, so that the rules of users are applied again.
func (d *Documents) Reset() { d.views.Clear() }

// cacheOf returns the cache of the context of a view, the same one for all callers.
func (d *Documents) cacheOf(subject appcontext.DeploymentRef, view appcontext.View) *viewCache {
	key := struct {
		subject appcontext.DeploymentRef
		context string
	}{subject, view.ContextID}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, _ := d.views.Get(key)
	cache, ok := known.(*viewCache)
	if !ok {
		cache = &viewCache{}
		d.views.Add(key, cache)
	}
	return cache
}

func (h *handler) groupStatus(ctx context.Context, q *requestInfo) (response, error) {
	return h.Documents.respond(ctx, groupOf(q), q.query)
}

func (h *handler) clusterStatus(ctx context.Context, q *requestInfo) (response, error) {
	return h.Documents.respond(ctx, appcontext.ClusterRef(q.PathValue("provider"), q.PathValue("cluster")), q.query)
}

// respond returns the status document of a subject for a query.
func (d *Documents) respond(ctx context.Context, subject appcontext.DeploymentRef, query url.Values) (response, error) {
	q, err := status.ParseQuery(query)
	if err != nil {
		return response{}, statusErrorf(http.StatusBadRequest, "%w", err)
	}
	if d.Contexts == nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: there are no AppContexts to read: the server's configuration has no section appContext, which says in which etcd they are", errNotConfigured)
	}
	key := documentKey{subject, query.Encode()}
	if dependsOnContextsOnly(q) {
		view, err := d.view(ctx, subject, q)
		if err != nil {
			return response{}, err
		}
		if document, ok := d.cacheOf(subject, view).document(view, key.query); ok && isCacheable(q, view, time.Now()) {
			return document, nil
		}
	}
	compose := func(ctx context.Context) (response, error) { return d.composeDocument(ctx, key, q) }
	if q.Output != status.OutputDetail {
		return d.coalescer.do(ctx, key, compose)
	}
	if err := d.acquireDetail(ctx); err != nil {
		return response{}, err
	}
	defer func() { <-d.detailTokens }()
	return compose(ctx)
}

// composeDocument makes the document for a query from the current views and observations.
func (d *Documents) composeDocument(ctx context.Context, key documentKey, q status.Query) (response, error) {
	view, err := d.view(ctx, key.subject, q)
	if err != nil {
		return response{}, err
	}
	cache := d.cacheOf(key.subject, view)
	in := status.Input{Subject: key.subject, View: view, Contents: cache.decode(view), Policy: d.Policy, Now: time.Now()}
	in.Reports = d.reports(ctx, in, q)
	document, err := status.Answer(in, q)
	if err != nil {
		return response{}, statusErrorf(http.StatusBadRequest, "%w", err)
	}
	made, err := response{document: document, cacheable: true}.encode(typeJSON)
	made.document = nil // Only its encoded form is kept.
	if err == nil && isCacheable(q, view, in.Now) {
		cache.store(view, key.query, made)
	}
	return made, err
}

// view reads the view of a subject.
func (d *Documents) view(ctx context.Context, subject appcontext.DeploymentRef, q status.Query) (appcontext.View, error) {
	kind, emcoKind := "deployment intent group", "DeploymentIntentGroup"
	if subject.Cluster != "" {
		kind, emcoKind = "the network intents of cluster", "Cluster"
	}
	view, err := d.Contexts.View(ctx, subject, q.Instance)
	none := err == nil && len(view.Contexts) == 0 && len(view.Info.Actions) == 0
	outdated := time.Since(view.AsOf) > status.CurrentFor
	switch {
	case outdated && !view.AsOf.IsZero() && (none || errors.Is(err, appcontext.ErrNotFound)): // The subject may have been created since then.
		return view, statusErrorf(http.StatusServiceUnavailable, "%w: etcd has not answered since %s, and nothing was known of it then", errNotReady, view.AsOf.UTC().Format(time.RFC3339))
	case err != nil:
		return view, viewError(err, q)
	case none && q.EMCO != nil:
		return view, statusErrorf(http.StatusNotFound, "%s not found: there is neither a context nor a history of %s in etcd", emcoKind, quote(subject.String()))
	case q.EMCO != nil && outdated:
		return view, statusErrorf(http.StatusServiceUnavailable, "%w: etcd has not answered since %s, and an answer of EMCO's cannot say how old it is", errNotReady, view.AsOf.UTC().Format(time.RFC3339))
	case none:
		return view, statusErrorf(http.StatusNotFound, "nothing is known of %s %s: there is neither a context nor a history of it in etcd", kind, quote(subject.String()))
	}
	return view, nil
}

// viewError returns the answer to a query whose view cannot be read.
func viewError(err error, q status.Query) error {
	switch noInstance := errors.Is(err, appcontext.ErrNotFound); {
	case noInstance && q.EMCO != nil:
		return statusErrorf(http.StatusBadRequest, "No state information for %s", q.Instance)
	case noInstance:
		return statusErrorf(http.StatusNotFound, "query parameter \"instance\" has the value %s, which is none of its instances; without a value, instance lists them", quote(q.Instance))
	case errors.Is(err, appcontext.ErrInvalid):
		return statusErrorf(http.StatusBadRequest, "%w", err)
	}
	return statusErrorf(cmp.Or(statusOf(err), http.StatusServiceUnavailable), "cannot read the AppContexts in etcd: %w", err)
}

// acquireDetail waits until another response with whole objects may begin, unless too many requests wait already. The caller must remove a
// token from detailTokens afterwards.
func (d *Documents) acquireDetail(ctx context.Context) error {
	if acquire(d.detailTokens) {
		return nil
	}
	if acquire(d.waitingTokens) {
		defer func() { <-d.waitingTokens }()
		select {
		case d.detailTokens <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}
	return statusErrorf(http.StatusServiceUnavailable, "%w: %d answers with whole objects are being made already; try again, or ask for one app or cluster", ErrBusy, maxDetail)
}

// dependsOnContextsOnly reports whether a response depends only on contexts, and neither on clusters nor on the time.
func dependsOnContextsOnly(q status.Query) bool { return q.Type == status.TypeRsync && !q.Health }

// isCacheable reports whether the response to a query, made from a view at a time, may be reused.
func isCacheable(q status.Query, view appcontext.View, now time.Time) bool {
	return dependsOnContextsOnly(q) && now.Sub(view.AsOf) < maxCacheableAge
}

// reports returns the reports of the clusters that a query selects: what the hub observes, and for a cluster that it does not observe, what
// the context holds. While the hub knows such a cluster and cannot reach it, the report is marked as not known to be current.
func (d *Documents) reports(ctx context.Context, in status.Input, q status.Query) map[status.AppInCluster]status.Report {
	expected := in.Contents.Expected(in.Subject, q)
	if len(expected) == 0 {
		return nil
	}
	meta, _ := in.Context.Meta() // The document lists what in a context cannot be read.
	observations := make([]Observation, len(expected))
	for i, e := range expected {
		seen, ok := d.Clusters.Bundle(e.Cluster, e.BundleName, meta.Namespace)
		observations[i] = seen
		if ok {
			continue
		}
		if saved := in.Contents.SavedBundle(e.AppInCluster, d.HealthChecks); saved != nil {
			r := status.SavedReport(saved, d.Policy, in.Seen(e.Saved, e.SavedRevision), in.Now)
			if seen.Unreachable {
				r.Unreachable, r.Reason, r.Message = true, seen.Reason, seen.Message
				r.Members = healthscope.MarkUnreachable(r.Members, seen.Reason, seen.Message, r.LastSeen)
			}
			observations[i] = Observation{Report: r}
		}
	}
	if q.Output == status.OutputDetail && q.Type != status.TypeRsync {
		readBundles(ctx, observations)
	}
	reports := make(map[status.AppInCluster]status.Report, len(expected))
	for i, e := range expected {
		reports[e.AppInCluster] = observations[i].Report
	}
	return reports
}

// readBundles reads whole bundles. It leaves out bundles that cannot be read, whose objects are not available.
func readBundles(ctx context.Context, observations []Observation) {
	limited, cancel := context.WithTimeout(ctx, bundleReadTimeout)
	defer cancel()
	var reads errgroup.Group
	reads.SetLimit(maxReads)
	for i := range observations {
		s := &observations[i]
		if s.Bundle != nil || s.Read == nil {
			continue
		}
		reads.Go(func() error {
			if b, err := s.Read(limited); err == nil {
				s.Bundle = b
			}
			return nil
		})
	}
	_ = reads.Wait() // The functions return no errors.
}

func (h *handler) instanceStatus(ctx context.Context, q *requestInfo) (response, error) {
	id := q.PathValue("id")
	if err := h.Ready(); err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: %w", errNotReady, err)
	}
	observations, unread := h.Documents.Clusters.Instance(id)
	switch {
	case len(observations) == 0 && len(unread) > 0:
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: nothing is known of instance %s, and it may be in a cluster that has not been read yet: %s", errNotReady, quote(id), strings.Join(unread, ", "))
	case len(observations) == 0:
		return response{}, statusErrorf(http.StatusNotFound, "nothing is known of instance %s: no ResourceBundleState that can be seen has the label %s=%s", quote(id), status.InstanceLabel, id)
	}
	if err := h.Documents.acquireDetail(ctx); err != nil {
		return response{}, err
	}
	defer func() { <-h.Documents.detailTokens }()
	readBundles(ctx, observations)
	reports := make([]status.Report, 0, len(observations))
	for i := range observations {
		reports = append(reports, observations[i].Report)
	}
	return response{document: status.NewInstance(id, reports, unread), cacheable: true}, nil
}
