package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/healthscope"
)

// DefaultFindInterval is the default of Objects.FindInterval.
const DefaultFindInterval = 30 * time.Second

// SettleTime is how long a kind may take to be read for the first time before
// its objects are called Unknown for that reason. A slow API server is no news.
const SettleTime = 30 * time.Second

// Objects watches kinds of objects on demand and holds the raw Result of each
// object, made as it comes in; the objects themselves are not kept. A kind is
// watched as long as somebody wants it. It is safe for concurrent use.
type Objects struct {
	// FindInterval is how often a kind that the cluster does not serve is looked
	// for again, as long as somebody wants it. It must not be changed once something is wanted.
	FindInterval time.Duration

	cluster string
	client  dynamic.Interface
	mapper  meta.RESTMapper
	labels  []string

	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // The life of the watches, which start on demand: Start's context, as in controller-runtime's cache.
	kinds  map[schema.GroupVersionKind]*kindWatch
	wants  map[types.NamespacedName]map[schema.GroupVersionKind]struct{}
	notify func(schema.GroupVersionKind, types.NamespacedName)
}

// NewObjects returns an Objects for one cluster. allowedLabels are the label
// keys that Results carry. It must be started before anything is wanted of it.
func NewObjects(cluster string, config *rest.Config, mapper meta.RESTMapper, allowedLabels []string) (*Objects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", cluster)
	}
	return &Objects{
		FindInterval: DefaultFindInterval,
		cluster:      cluster, client: client, mapper: mapper, labels: allowedLabels,
		kinds: map[schema.GroupVersionKind]*kindWatch{},
		wants: map[types.NamespacedName]map[schema.GroupVersionKind]struct{}{},
	}, nil
}

// Start runs the watches until ctx ends, and notify is called for every object
// that changes, with an empty name when a whole kind does: when it has been read
// for the first time, or cannot be read any more. notify must not block.
func (o *Objects) Start(ctx context.Context, notify func(schema.GroupVersionKind, types.NamespacedName)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ctx, o.notify = ctx, notify
}

// Want says which kinds somebody wants to be watched from now on, in place of
// those they wanted before. A kind that nobody wants any more is forgotten.
func (o *Objects) Want(who types.NamespacedName, kinds map[schema.GroupVersionKind]struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(kinds) == 0 {
		delete(o.wants, who)
	} else {
		o.wants[who] = kinds
	}
	for gvk := range kinds {
		o.ensure(gvk)
	}
	for gvk, w := range o.kinds {
		if !o.wanted(gvk) {
			w.stop()
			delete(o.kinds, gvk)
		}
	}
}

func (o *Objects) wanted(gvk schema.GroupVersionKind) bool {
	for _, kinds := range o.wants {
		if _, ok := kinds[gvk]; ok {
			return true
		}
	}
	return false
}

// ensure starts to watch a kind, unless it is watched already.
func (o *Objects) ensure(gvk schema.GroupVersionKind) {
	if o.kinds[gvk] != nil || o.ctx == nil || o.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	w := &kindWatch{objects: o, gvk: gvk, notify: o.notify, started: time.Now(), cancel: cancel, results: map[types.NamespacedName]healthscope.Result{}}
	o.kinds[gvk] = w
	go w.run(ctx)
}

// Lookup is the answer to a question for one object.
type Lookup struct {
	// Result is raw: what the rule for the kind says of the object, NotPresent when it does not exist, or Unknown with the reason why it cannot be seen.
	Result healthscope.Result
	// Settling is true while the kind is being read for the first time, SettleTime at most, and the answer is Unknown for that reason only.
	Settling bool
}

// Get returns what is known of an object of a kind that is wanted. A kind that is not wanted is settling for ever.
func (o *Objects) Get(gvk schema.GroupVersionKind, name types.NamespacedName) Lookup {
	unknown := healthscope.Result{
		Key:     healthscope.Key{Cluster: o.cluster, Group: gvk.Group, Kind: gvk.Kind, Namespace: name.Namespace, Name: name.Name},
		Version: gvk.Version, State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced,
		Message: "the objects of this kind have not been read yet",
	}
	o.mu.Lock()
	w := o.kinds[gvk]
	o.mu.Unlock()
	if w == nil {
		return Lookup{Result: unknown, Settling: true}
	}
	return w.get(name, unknown)
}
