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
	// maxCacheableAge is how old what is known of etcd may be for an answer to be kept: later it has to say how old it is.
	maxCacheableAge = 5 * time.Second
)

// encodedDocument is a document that has been encoded already, with its tag.
type encodedDocument struct {
	body []byte
	tag  string
}

// viewCache are the views of subjects as they were decoded last. It is the only cache here: with a view, the answers go that were made of it.
type viewCache struct {
	mu    sync.Mutex
	views *lru.Cache
}

// viewCacheEntry is the view of one instance of a subject as it was decoded last. While it is being decoded, others wait for the result.
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
	// documents are those that depend on the view alone, by their queries, and size is that of all of them.
	documents map[string]encodedDocument
	size      int
}

// documentKey identifies a document by its subject and its query.
type documentKey struct {
	subject appcontext.DeploymentRef
	query   string
}

// get returns what a view holds, decoded. What was decoded before is used as far as it still holds.
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

// refresh decodes a view. Contexts that still hold what they held are not decoded again.
func (d *cachedView) refresh(view appcontext.View) *cachedView {
	next := &cachedView{view: view, documents: map[string]encodedDocument{}}
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

// document returns the answer to a query that was kept.
func (d *cachedView) document(query string) (encodedDocument, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok := d.documents[query]
	return made, ok
}

// store caches the document for a query. When there is no room for it, store evicts all others; they are made again on request.
func (d *cachedView) store(query string, made encodedDocument) {
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

// isCurrent reports whether a view holds the same as the one that was decoded.
func (d *cachedView) isCurrent(view appcontext.View) bool {
	return d.hasSameContexts(view) && slices.Equal(d.view.Contexts, view.Contexts) && reflect.DeepEqual(d.view.Info, view.Info)
}

func (d *cachedView) hasSameContexts(view appcontext.View) bool {
	return d.view.Context.Same(view.Context) && d.view.StatusContext.Same(view.StatusContext)
}

// savedBundle returns the bundle that is saved in the context for a place, decoded; nil when there is none, or when the hub sees what is there itself.
func (d *cachedView) savedBundle(e status.Expected, seen bool, user rules.UserRules) *status.Bundle {
	if seen || e.Saved == "" {
		return nil
	}
	return d.contents.SavedBundle(e.AppInCluster, user)
}
