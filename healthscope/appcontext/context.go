package appcontext

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
)

// AppContext is one context in a Store, for programs that make or change contexts. Its methods have the names of EMCO's
// library. Begin with InitAppContext and CreateCompositeApp for a new context, or with LoadAppContext for one that exists;
// after that the methods are safe for concurrent use.
type AppContext struct {
	store *Store
	id    string
}

// NewAppContext returns an AppContext without a context yet.
func NewAppContext(s *Store) *AppContext { return &AppContext{store: s} }

// ID returns the id of the context; empty before InitAppContext or LoadAppContext.
func (ac *AppContext) ID() string { return ac.id }

// InitAppContext chooses the id of a new context, at random, and returns it. Nothing is stored until CreateCompositeApp.
func (ac *AppContext) InitAppContext() string {
	ac.id = strconv.FormatInt(rand.Int64N(math.MaxInt64), 10) //nolint:gosec // An id is no secret, and CreateCompositeApp finds out if it is taken.
	return ac.id
}

// InitAppContextWithValue is InitAppContext with an id that the caller has chosen, which must not be negative: what
// follows the first hyphen of a bundle's name is the app.
func (ac *AppContext) InitAppContextWithValue(id int64) (string, error) {
	if id < 0 {
		return "", &invalidError{"context id", strconv.FormatInt(id, 10), "must not be negative"}
	}
	ac.id = strconv.FormatInt(id, 10)
	return ac.id, nil
}

// LoadAppContext selects the context with an id and returns its handle; ErrNotFound when there is none.
func (ac *AppContext) LoadAppContext(ctx context.Context, id string) (Handle, error) {
	if err := checkName("context id", id); err != nil {
		return "", err
	}
	ac.id = id
	h, err := ac.GetCompositeAppHandle(ctx)
	return h, wrap("cannot find context", err)
}

// GetCompositeAppHandle returns the handle of the context.
func (ac *AppContext) GetCompositeAppHandle(ctx context.Context) (Handle, error) {
	h, err := ac.handle("")
	if err != nil {
		return "", err
	}
	kv, err := ac.store.get(ctx, string(h))
	if err != nil {
		return "", wrap(opMeta, err)
	}
	stored, err := decodeText(string(h), kv.Value)
	if err == nil && stored != ac.id {
		err = keyError(ErrMalformed, string(h))
	}
	if err != nil {
		return "", wrap(opMeta, err)
	}
	return h, nil
}

// handle returns the handle of a level, if it is not empty, of the context, or of an app, its cluster or a resource there if they
// are named. It does not look up whether anything is there.
func (ac *AppContext) handle(level string, names ...string) (Handle, error) {
	if ac.id == "" {
		return "", &invalidError{"context id", "", "must be set by InitAppContext or LoadAppContext"}
	}
	h := ContextHandle(ac.id)
	for i, name := range names {
		part, check := [...]string{partApp, partCluster, partResource}[i], checkNode
		if part == partCluster {
			check = checkName
		}
		if err := check(part+" name", name); err != nil {
			return "", err
		}
		h = h.Level(part).Level(name)
	}
	if level != "" {
		h = h.Level(level)
	}
	return h, nil
}

// CreateCompositeApp creates the context that InitAppContext has chosen an id for, and returns its handle. It fails with
// ErrExists, and changes nothing, when there is one with this id.
func (ac *AppContext) CreateCompositeApp(ctx context.Context) (Handle, error) {
	h, err := ac.handle("")
	if err != nil {
		return "", err
	}
	t := &transaction{}
	t.requireAbsent(string(h))
	t.put(string(h), ac.id)
	if err := ac.store.commit(ctx, t); err != nil {
		return "", wrap("cannot create context", err)
	}
	return h, nil
}

// DeleteCompositeApp deletes the context, everything in it, and its entries in indices; the actions in histories stay. It
// is no error if nothing is there.
func (ac *AppContext) DeleteCompositeApp(ctx context.Context) error {
	h, err := ac.handle("")
	if err != nil {
		return err
	}
	return ac.delete(ctx, h, func(DeploymentRef) bool { return true })
}

// AddCompositeAppMeta records what the context was made for, and replaces an earlier record. When the meta data name a
// deployment intent group, the context is entered in its index at the same time.
func (ac *AppContext) AddCompositeAppMeta(ctx context.Context, meta CompositeAppMeta) error {
	h, err := ac.handle("")
	if err != nil {
		return err
	}
	t := &transaction{}
	t.require(string(h))
	t.put(string(h.Level(partMeta)), meta)
	if s, ok := meta.DeploymentRef(); ok {
		t.index(s, ac.id)
	}
	return wrap("cannot save meta data", ac.store.commit(ctx, t))
}

// GetCompositeAppMeta returns what the context was made for; ErrNotFound when that is not recorded.
func (ac *AppContext) GetCompositeAppMeta(ctx context.Context) (CompositeAppMeta, error) {
	var meta CompositeAppMeta
	h, err := ac.handle(partMeta)
	if err != nil {
		return meta, err
	}
	kv, err := ac.store.get(ctx, string(h))
	if err == nil {
		err = decode(string(kv.Key), kv.Value, &meta)
	}
	return meta, wrap(opMeta, err)
}
