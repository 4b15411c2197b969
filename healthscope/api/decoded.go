package api

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/status"
)

const (
	// maxDecoded is how many contexts are kept as they were decoded; beyond that, the one that was asked for longest ago goes.
	maxDecoded = 64
	// maxKept is how many answers are kept, and maxKeptBytes how large each may be.
	maxKept      = 32
	maxKeptBytes = 1 << 20
	// keepsFresh is how old what is known of etcd may be for an answer to be kept: later it has to say how old it is.
	keepsFresh = 5 * time.Second
)

// encoded is a document that has been encoded already, with its tag.
type encoded struct {
	body []byte
	tag  string
}

// decodedContexts are contexts as they were decoded last, by their ids.
type decodedContexts struct {
	mu       sync.Mutex
	contexts *lru.Cache
}

// of returns what a view's context holds, decoded. What was decoded before is used as far as it still holds.
func (d *decodedContexts) of(view appcontext.View) *decoded {
	entry := d.entry(view.ContextID)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.last == nil || !entry.last.holds(view) {
		entry.last = entry.next(view)
	}
	return entry.last
}

func (d *decodedContexts) entry(id string) *decodedContext {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.contexts == nil {
		d.contexts = lru.New(maxDecoded)
	}
	if known, ok := d.contexts.Get(id); ok {
		if entry, ok := known.(*decodedContext); ok {
			return entry
		}
	}
	entry := &decodedContext{}
	d.contexts.Add(id, entry)
	return entry
}

func (d *decodedContexts) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contexts = nil
}

// decodedContext is one context, as it was decoded last. While it is being decoded, others wait for the result.
type decodedContext struct {
	mu   sync.Mutex
	last *decoded
}

// next decodes a view.
func (d *decodedContext) next(view appcontext.View) *decoded {
	next := &decoded{serial: serials.Add(1), context: view.Context, statuses: view.StatusContext}
	var previous *status.Contents
	if d.last != nil {
		previous = d.last.contents
	}
	next.contents = status.Decode(view, previous)
	return next
}

// decoded is what a context holds, with what was made of it.
type decoded struct {
	// serial is its own, so that answers can be told apart that were made of another.
	serial            uint64
	context, statuses *appcontext.Snapshot
	// contents is nil without a context.
	contents *status.Contents
}

// serials counts what has been decoded.
var serials atomic.Uint64

// holds says whether the contexts of a view hold the same as those that were decoded.
func (d *decoded) holds(view appcontext.View) bool {
	return d.context.Same(view.Context) && d.statuses.Same(view.StatusContext)
}

// question is what was asked about whom.
type question struct {
	subject appcontext.Subject
	query   string
}

// kept is an answer with what it was made of.
type kept struct {
	encoded

	serial   uint64
	info     appcontext.StateInfo
	contexts []string
}

// kept returns the answer to a question that was kept, if it still holds.
func (d *Documents) kept(q question, contents *decoded, view appcontext.View) (encoded, bool) {
	value, ok := d.answers.Get(q)
	k, isAnswer := value.(kept)
	return k.encoded, ok && isAnswer && k.serial == contents.serial && slices.Equal(k.contexts, view.Contexts) && reflect.DeepEqual(k.info, view.Info)
}

// keep keeps the answer to a question.
func (d *Documents) keep(q question, contents *decoded, view appcontext.View, made encoded) {
	if len(made.body) <= maxKeptBytes {
		d.answers.Add(q, kept{made, contents.serial, view.Info, view.Contexts})
	}
}

// saved returns the bundle that is saved in the context for a place, decoded; nil when there is none, or when the hub sees what is there itself.
func (d *decoded) saved(e status.Expected, seen bool, user rules.UserRules) *status.Bundle {
	if seen || e.Saved == "" {
		return nil
	}
	return d.contents.SavedBundle(e.Place, user)
}
