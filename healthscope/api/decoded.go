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
	// maxDecoded is how many views are kept as they were decoded; beyond that, the one that was asked for longest ago goes.
	maxDecoded = 64
	// maxKeptBytes is how large the answers are together that are kept of one view.
	maxKeptBytes = 1 << 20
	// keepsFresh is how old what is known of etcd may be for an answer to be kept: later it has to say how old it is.
	keepsFresh = 5 * time.Second
)

// encoded is a document that has been encoded already, with its tag.
type encoded struct {
	body []byte
	tag  string
}

// decodedViews are the views of subjects as they were decoded last. It is the only cache here: with a view, the answers go that were made of it.
type decodedViews struct {
	mu    sync.Mutex
	views *lru.Cache
}

// decodedView is the view of one instance of a subject as it was decoded last. While it is being decoded, others wait for the result.
type decodedView struct {
	mu   sync.Mutex
	last *decoded
}

// decoded is what a view holds.
type decoded struct {
	view appcontext.View
	// contents is nil without a context.
	contents *status.Contents

	mu sync.Mutex
	// answers are those that depend on the view alone, by their queries, and size is that of all of them.
	answers map[string]encoded
	size    int
}

// question is what was asked about whom.
type question struct {
	subject appcontext.Subject
	query   string
}

// of returns what a view holds, decoded. What was decoded before is used as far as it still holds.
func (d *decodedViews) of(subject appcontext.Subject, view appcontext.View) *decoded {
	entry := d.entry(question{subject, view.ContextID})
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.last == nil || !entry.last.holds(view) {
		entry.last = entry.last.next(view)
	}
	return entry.last
}

func (d *decodedViews) entry(key any) *decodedView {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.views == nil {
		d.views = lru.New(maxDecoded)
	}
	known, _ := d.views.Get(key)
	entry, ok := known.(*decodedView)
	if !ok {
		entry = &decodedView{}
		d.views.Add(key, entry)
	}
	return entry
}

func (d *decodedViews) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.views = nil
}

// next decodes a view. Contexts that still hold what they held are not decoded again.
func (d *decoded) next(view appcontext.View) *decoded {
	next := &decoded{view: view, answers: map[string]encoded{}}
	switch {
	case d == nil:
		next.contents = status.Decode(view, nil)
	case d.holdsContexts(view):
		next.contents = d.contents
	default:
		next.contents = status.Decode(view, d.contents)
	}
	return next
}

// answer returns the answer to a query that was kept.
func (d *decoded) answer(query string) (encoded, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, ok := d.answers[query]
	return made, ok
}

// keep keeps the answer to a query. When there is no room for it, all others go: they are made again when they are asked for.
func (d *decoded) keep(query string, made encoded) {
	if len(made.body) > maxKeptBytes {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size+len(made.body) > maxKeptBytes {
		clear(d.answers)
		d.size = 0
	}
	d.size += len(made.body) - len(d.answers[query].body)
	d.answers[query] = made
}

// holds reports whether a view holds the same as the one that was decoded.
func (d *decoded) holds(view appcontext.View) bool {
	return d.holdsContexts(view) && slices.Equal(d.view.Contexts, view.Contexts) && reflect.DeepEqual(d.view.Info, view.Info)
}

func (d *decoded) holdsContexts(view appcontext.View) bool {
	return d.view.Context.Same(view.Context) && d.view.StatusContext.Same(view.StatusContext)
}

// saved returns the bundle that is saved in the context for a place, decoded; nil when there is none, or when the hub sees what is there itself.
func (d *decoded) saved(e status.Expected, seen bool, user rules.UserRules) *status.Bundle {
	if seen || e.Saved == "" {
		return nil
	}
	return d.contents.SavedBundle(e.Place, user)
}
