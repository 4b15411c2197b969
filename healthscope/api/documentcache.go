package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/healthscope/healthscope/healthscope/appcontext"
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

// viewCache caches the last view of one context of a subject in decoded form, and the documents that depend on nothing else, by query. Other
// requests wait while a request decodes it.
type viewCache struct {
	mu        sync.Mutex
	view      appcontext.View
	contents  *status.Contents
	documents map[string]response
	// size is the sum of the sizes of documents, in bytes.
	size int
}

// decode returns the decoded contexts of a view; nil without a context.
func (c *viewCache) decode(view appcontext.View) *status.Contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(view)
	return c.contents
}

// document returns the cached document that was made of a view for a query.
func (c *viewCache) document(view appcontext.View, query string) (response, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(view)
	made, ok := c.documents[query]
	return made, ok
}

// store caches a document that was made of a view, unless there is another view by now. When it does not fit, store evicts all other documents.
func (c *viewCache) store(view appcontext.View, query string, made response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(made.body) > maxCachedBytes || !c.holds(view) {
		return
	}
	if c.size+len(made.body) > maxCachedBytes || c.documents == nil {
		c.documents, c.size = map[string]response{}, 0
	}
	c.size += len(made.body) - len(c.documents[query].body)
	c.documents[query] = made
}

// replace replaces the view by one that differs. It does not decode again what has not changed.
func (c *viewCache) replace(view appcontext.View) {
	if c.holds(view) {
		return
	}
	if !c.hasContexts(view) {
		c.contents = status.Decode(view, c.contents)
	}
	c.view, c.documents, c.size = view, nil, 0
}

// holds reports whether a view has the same contents as the cached one.
func (c *viewCache) holds(view appcontext.View) bool {
	return c.hasContexts(view) && slices.Equal(c.view.Contexts, view.Contexts) && reflect.DeepEqual(c.view.Info, view.Info)
}

func (c *viewCache) hasContexts(view appcontext.View) bool {
	return c.view.Context.Same(view.Context) && c.view.StatusContext.Same(view.StatusContext)
}

// documentKey identifies a document by its subject and its query.
type documentKey struct {
	subject appcontext.DeploymentRef
	query   string
}

// coalescer makes one response for all concurrent requests for the same document. Only requests that arrived before the work
// on a response began share it, so that no caller gets an outdated response. Requests that arrive during the work share the next
// response. The zero value is ready to use.
type coalescer struct {
	// running groups the responses in progress, one for each document. next groups the requests that wait for one to end.
	running, next singleflight.Group
}

// do returns a response of a call of compose that begins after the call of do. compose must return the same response for all requests with the
// same key. Its context does not end when one of these requests ends.
func (b *coalescer) do(ctx context.Context, q documentKey, compose func(context.Context) (response, error)) (response, error) {
	key := q.subject.String() + "?" + q.query
	detached := context.WithoutCancel(ctx)
	results := b.next.DoChan(key, func() (any, error) {
		for { // A response that is already in progress may be outdated for these callers: wait for its end, and make the next one.
			started := false
			a, err, _ := b.running.Do(key, func() (any, error) {
				started = true
				b.next.Forget(key) // Callers that arrive from now on share the next response.
				return composeRecovering(detached, compose)
			})
			if started {
				return a, err
			}
		}
	})
	select {
	case result := <-results:
		a, _ := result.Val.(response)
		return a, result.Err
	case <-ctx.Done():
		return response{}, statusErrorf(http.StatusServiceUnavailable, "the answer was not ready in time: %w", context.Cause(ctx))
	}
}

// composeRecovering makes a response. It turns a panic into an error, so that all callers get one.
func composeRecovering(ctx context.Context, compose func(context.Context) (response, error)) (a response, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return compose(ctx)
}
