package api

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/status"
)

const (
	// maxCachedViews is the number of decoded views in the cache; beyond it, the least recently used one is evicted.
	maxCachedViews = 64
	// maxCachedBytes bounds the cached documents of one view together, in bytes.
	maxCachedBytes = 1 << 20
	// maxCacheableAge is the maximum age of a view of etcd for its documents to be cached. Documents of older views may contain the age.
	maxCacheableAge = 5 * time.Second
)

// viewCache caches the last decoded view of each subject. It is the only cache of this package: the documents made from a view are evicted
// together with it.
type viewCache struct {
	mu    sync.Mutex
	views *lru.Cache
}

// viewCacheEntry is the last decoded view of one instance of a subject. Other requests wait while a request decodes it.
type viewCacheEntry struct {
	mu   sync.Mutex
	last *cachedView
}

// cachedView is a decoded view with the documents that were made from it.
type cachedView struct {
	view appcontext.View
	// contents is nil without a context.
	contents *status.Contents

	mu sync.Mutex
	// documents are the documents that depend only on the view, by query; size is the sum of their sizes, in bytes.
	documents map[string]response
	size      int
}

// documentKey identifies a document by its subject and its query.
type documentKey struct {
	subject appcontext.DeploymentRef
	query   string
}

// get returns the decoded view. It reuses the parts of the previous view that have not changed.
func (d *viewCache) get(subject appcontext.DeploymentRef, view appcontext.View) *cachedView {
	entry := d.entryFor(documentKey{subject, view.ContextID})
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.last == nil || !entry.last.isCurrent(view) {
		entry.last = entry.last.refresh(view)
	}
	return entry.last
}

func (d *viewCache) entryFor(key any) *viewCacheEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.views == nil {
		d.views = lru.New(maxCachedViews)
	}
	known, _ := d.views.Get(key)
	entry, ok := known.(*viewCacheEntry)
	if !ok {
		entry = &viewCacheEntry{}
		d.views.Add(key, entry)
	}
	return entry
}

func (d *viewCache) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.views = nil
}

// refresh decodes a view. It does not decode contexts again that have not changed.
func (d *cachedView) refresh(view appcontext.View) *cachedView {
	next := &cachedView{view: view, documents: map[string]response{}}
	switch {
	case d == nil:
		next.contents = status.Decode(view, nil)
	case d.hasSameContexts(view):
		next.contents = d.contents
	default:
		next.contents = status.Decode(view, d.contents)
	}
	return next
}

// document returns the cached document for a query.
func (d *cachedView) document(query string) (response, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok := d.documents[query]
	return made, ok
}

// store caches the document for a query. When it does not fit, store evicts all other documents of the view.
func (d *cachedView) store(query string, made response) {
	if len(made.body) > maxCachedBytes {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size+len(made.body) > maxCachedBytes {
		clear(d.documents)
		d.size = 0
	}
	d.size += len(made.body) - len(d.documents[query].body)
	d.documents[query] = made
}

// isCurrent reports whether a view has the same contents as the decoded one.
func (d *cachedView) isCurrent(view appcontext.View) bool {
	return d.hasSameContexts(view) && slices.Equal(d.view.Contexts, view.Contexts) && reflect.DeepEqual(d.view.Info, view.Info)
}

func (d *cachedView) hasSameContexts(view appcontext.View) bool {
	return d.view.Context.Same(view.Context) && d.view.StatusContext.Same(view.StatusContext)
}

// savedBundle returns the decoded bundle that the context holds for an app in a cluster; nil when there is none, or when the hub itself observes
// the bundle (seen).
func (d *cachedView) savedBundle(e status.Expected, seen bool, user rules.UserRules) *status.Bundle {
	if seen || e.Saved == "" {
		return nil
	}
	return d.contents.SavedBundle(e.AppInCluster, user)
}
