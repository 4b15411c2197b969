package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/status"
)

// parameterDialect is the query parameter that asks for the answers of EMCO 22.12.
const parameterDialect = "dialect"

const (
	// maxDetail bounds the responses with whole objects that are made at once: each can take 100 MiB while it is made.
	maxDetail = 4
	// maxWaiting is how many requests may wait for that. More would take the place of requests for what is answered at once.
	maxWaiting = 32
	// maxReads is the maximum number of bundles that are read from clusters at once for one response, and bundleReadTimeout
	// limits how long that takes. A response leaves out what has not been read by then.
	maxReads          = 16
	bundleReadTimeout = 10 * time.Second
)

// Contexts is where AppContexts are read from: an appcontext.Cache.
type Contexts interface {
	// View returns what is known of a subject, as appcontext.Cache.View does.
	View(ctx context.Context, subject appcontext.DeploymentRef, instance string) (appcontext.View, error)
}

// Clusters is what the hub sees of bundles in its clusters.
type Clusters interface {
	// Bundle returns what is known of the bundle of that name in a cluster; of several, that in the namespace, if it is not
	// empty. It returns false when the hub does not see the cluster and has not seen the bundle there before; then the
	// Observation says why.
	Bundle(cluster, name, namespace string) (Observation, bool)
	// Instance returns what is known of all bundles whose label status.InstanceLabel has that value, and the names of the
	// clusters that have never been read, sorted: there may be more of them there.
	Instance(id string) (found []Observation, unread []string)
}

// Observation is a bundle as the hub sees it.
type Observation struct {
	status.Report
	// Read reads the whole bundle from its cluster; nil when there is none, or it cannot be read.
	Read func(ctx context.Context) (*status.Bundle, error)
}

// DocumentsOptions say what status documents are made of.
type DocumentsOptions struct {
	// Contexts is where AppContexts are read from. Without it, documents that need them are answered with 503.
	Contexts Contexts
	// Clusters is what the hub sees. Required.
	Clusters Clusters
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// HealthChecks are the user's rules, which judge bundles that are saved in contexts; they may be nil.
	HealthChecks rules.UserRules
}

// Documents makes status documents. It keeps what it has decoded of contexts, and is safe for concurrent use; several handlers can share it.
type Documents struct {
	DocumentsOptions

	views         viewCache
	coalescer     coalescer
	detailTokens  chan struct{}
	waitingTokens chan struct{}
}

// NewDocuments returns a Documents.
func NewDocuments(o DocumentsOptions) *Documents {
	return &Documents{DocumentsOptions: o, detailTokens: make(chan struct{}, maxDetail), waitingTokens: make(chan struct{}, maxWaiting)}
}

// Reset applies the user's rules again to what has been decoded already.
func (d *Documents) Reset() { d.views.clear() }

func (h *handler) groupStatus(ctx context.Context, r *http.Request, query url.Values) (response, error) {
	return h.documents.respond(ctx, groupOf(r), query)
}

func (h *handler) clusterStatus(ctx context.Context, r *http.Request, query url.Values) (response, error) {
	return h.documents.respond(ctx, appcontext.ClusterRef(r.PathValue("provider"), r.PathValue("cluster")), query)
}

// respond makes the document about a subject that a query asks for.
func (d *Documents) respond(ctx context.Context, subject appcontext.DeploymentRef, query url.Values) (response, error) {
	q, err := status.ParseQuery(query)
	if err != nil {
		return response{}, statusErrorf(http.StatusBadRequest, "%w", err)
	}
	if d == nil || d.Contexts == nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: there are no AppContexts to read: the server's configuration has no section appContext, which says in which etcd they are", errNotConfigured)
	}
	key := documentKey{subject, query.Encode()}
	if dependsOnContextsOnly(q) {
		view, err := d.view(ctx, subject, q)
		if err != nil {
			return response{}, err
		}
		if document, ok := d.views.get(subject, view).document(key.query); ok && isCacheable(q, view, time.Now()) {
			return response{document: document, cacheable: true}, nil
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

// composeDocument makes the document that a query asks for, from what is known now.
func (d *Documents) composeDocument(ctx context.Context, key documentKey, q status.Query) (response, error) {
	view, err := d.view(ctx, key.subject, q)
	if err != nil {
		return response{}, err
	}
	now := time.Now()
	contents := d.views.get(key.subject, view)
	document, err := status.Answer(status.Input{
		Subject: key.subject, View: view, Contents: contents.contents, Reports: d.reports(ctx, key.subject, view, contents, q, now), Policy: d.Policy, Now: now,
	}, q)
	if err != nil {
		return response{}, statusErrorf(http.StatusBadRequest, "%w", err)
	}
	body, err := encode(document)
	encoded := encodedDocument{body, etagOf(body)}
	if err == nil && isCacheable(q, view, now) {
		contents.store(key.query, encoded)
	}
	return response{document: encoded, cacheable: true}, err
}

// view reads what is known of a subject.
func (d *Documents) view(ctx context.Context, subject appcontext.DeploymentRef, q status.Query) (appcontext.View, error) {
	view, err := d.Contexts.View(ctx, subject, q.Instance)
	none := err == nil && len(view.Contexts) == 0 && len(view.Info.Actions) == 0
	if none || errors.Is(err, appcontext.ErrNotFound) {
		if at := view.AsOf; !at.IsZero() && time.Since(at) > status.CurrentFor { // It may have been made since.
			return view, statusErrorf(http.StatusServiceUnavailable, "%w: etcd has not answered since %s, and nothing was known of it then", errNotReady, at.UTC().Format(time.RFC3339))
		}
	}
	switch at := view.AsOf; {
	case err != nil:
		return view, viewError(q, err)
	case none && q.EMCO != nil:
		return view, statusErrorf(http.StatusNotFound, "%s not found: there is neither a context nor a history of %s in etcd", emcoKindOf(subject), quote(subject.String()))
	case q.EMCO != nil && time.Since(at) > status.CurrentFor:
		return view, statusErrorf(http.StatusServiceUnavailable, "%w: etcd has not answered since %s, and an answer of EMCO's cannot say how old it is", errNotReady, at.UTC().Format(time.RFC3339))
	case none:
		return view, statusErrorf(http.StatusNotFound, "nothing is known of %s %s: there is neither a context nor a history of it in etcd", kindOf(subject), quote(subject.String()))
	}
	return view, nil
}

// acquireDetail waits until one more answer with whole objects may be made, unless too many wait already. The caller takes a token out
// of detailTokens afterwards.
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

// dependsOnContextsOnly reports whether an answer depends on nothing but contexts: neither on clusters, nor on the time.
func dependsOnContextsOnly(q status.Query) bool { return q.Type == status.TypeRsync && !q.Health }

// isCacheable reports whether the answer to a query, made of a view at a time, may be given again.
func isCacheable(q status.Query, view appcontext.View, now time.Time) bool {
	return dependsOnContextsOnly(q) && now.Sub(view.AsOf) < maxCacheableAge
}

// kindOf says for people what a subject is.
func kindOf(s appcontext.DeploymentRef) string {
	if s.Cluster != "" {
		return "the network intents of cluster"
	}
	return "deployment intent group"
}

// emcoKindOf is what EMCO calls a subject.
func emcoKindOf(s appcontext.DeploymentRef) string {
	if s.Cluster != "" {
		return "Cluster"
	}
	return "DeploymentIntentGroup"
}

// viewError turns the error of a view into one for the caller.
func viewError(q status.Query, err error) error {
	switch {
	case errors.Is(err, appcontext.ErrNotFound) && q.EMCO != nil:
		return statusErrorf(http.StatusBadRequest, "No state information for %s", q.Instance)
	case errors.Is(err, appcontext.ErrNotFound):
		return statusErrorf(http.StatusNotFound, "query parameter \"instance\" has the value %s, which is none of its instances; without a value, instance lists them", quote(q.Instance))
	case errors.Is(err, appcontext.ErrInvalid):
		return statusErrorf(http.StatusBadRequest, "%w", err)
	case errors.Is(err, appcontext.ErrMalformed):
		return statusErrorf(http.StatusInternalServerError, "cannot read the AppContexts in etcd: %w", err)
	default:
		return statusErrorf(http.StatusServiceUnavailable, "cannot read the AppContexts in etcd: %w", err)
	}
}

// reports returns what is known of the clusters that a query asks about: what the hub sees, and for a cluster that it does not see what was saved in the context.
func (d *Documents) reports(ctx context.Context, subject appcontext.DeploymentRef, view appcontext.View, contents *cachedView, q status.Query, now time.Time) map[status.AppInCluster]status.Report {
	expected := contents.contents.Expected(subject, q)
	if len(expected) == 0 {
		return nil
	}
	meta, _ := view.Context.Meta() // The document says what in a context cannot be read.
	observations := make([]Observation, len(expected))
	for i, e := range expected {
		s, seen := d.Clusters.Bundle(e.Cluster, e.BundleName, meta.Namespace)
		if saved := contents.savedBundle(e, seen, d.HealthChecks); saved != nil {
			s = Observation{Report: markSavedReport(s.Report, status.SavedReport(saved, d.Policy, view.Seen(e.Saved, e.SavedRevision), now))}
		}
		observations[i] = s
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

// markSavedReport returns what was saved of a bundle. While its cluster is known and cannot be seen, it is not known whether it still
// holds.
func markSavedReport(seen, saved status.Report) status.Report {
	if seen.Unreachable {
		saved.Unreachable, saved.Reason, saved.Message = true, seen.Reason, seen.Message
		saved.Members = healthscope.MarkUnreachable(saved.Members, seen.Reason, seen.Message, saved.LastSeen)
	}
	return saved
}

// readBundles reads whole bundles. One that cannot be read is left out: its objects are not at hand.
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
	_ = reads.Wait() // There are no errors.
}

func (h *handler) instanceStatus(ctx context.Context, r *http.Request, _ url.Values) (response, error) {
	id := r.PathValue("id")
	if h.documents == nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: there are no clusters to look into", errNotConfigured)
	}
	if err := h.ready(); err != nil {
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: %w", errNotReady, err)
	}
	observations, unread := h.documents.Clusters.Instance(id)
	switch {
	case len(observations) == 0 && len(unread) > 0:
		return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: nothing is known of instance %s, and it may be in a cluster that has not been read yet: %s", errNotReady, quote(id), strings.Join(unread, ", "))
	case len(observations) == 0:
		return response{}, statusErrorf(http.StatusNotFound, "nothing is known of instance %s: no ResourceBundleState that can be seen has the label %s=%s", quote(id), status.InstanceLabel, id)
	}
	if err := h.documents.acquireDetail(ctx); err != nil {
		return response{}, err
	}
	defer func() { <-h.documents.detailTokens }()
	readBundles(ctx, observations)
	reports := make([]status.Report, 0, len(observations))
	for i := range observations {
		reports = append(reports, observations[i].Report)
	}
	return response{document: status.NewInstance(id, reports, unread), cacheable: true}, nil
}
