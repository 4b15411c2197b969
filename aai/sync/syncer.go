package sync

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// Defaults of Options.
const (
	// DefaultResync is how often a tenant is read again in full.
	DefaultResync = 10 * time.Minute
	// DefaultWriteTime is how long a pass may take to write.
	DefaultWriteTime = 2 * time.Minute
)

const (
	// Parallelism is the number of concurrent requests of a pass, besides the one that reads the tenant in full. Inside A&AI, writes to objects of
	// one VNF block each other, so more is not faster.
	Parallelism = 4
	// DependencyInterval is how long an object waits for its tenant, or for the target of a relationship, before it is retried.
	DependencyInterval = 30 * time.Second
	// DeletionPause is how long deletions beyond the limit wait.
	DeletionPause = time.Minute
)

// Options are the parts and the configuration of a Syncer.
type Options struct {
	// Client sends the requests to A&AI.
	Client *client.Client
	// Plan identifies the documents in A&AI that belong to this installation.
	Plan plan.Options
	// Resync is how often a tenant is read again in full, to repair changes by others. The default is DefaultResync.
	Resync time.Duration
	// WriteTime is how long a pass may take to write, without reading the tenant in full. What is not written by then is written in the
	// next pass, which is no error if A&AI has answered any request: then none begins in the last quarter of the time, which should be
	// longer than a request may take. The default is DefaultWriteTime.
	WriteTime time.Duration
	// Takeover is how long a syncer of another process may still have written after this one was made. Then each tenant is read again in full.
	Takeover time.Duration
	// Audit is called after each attempt to write, unless it is nil.
	Audit func(WriteEvent)
	// AuditStatus is called after each attempt to change a module's operational-status, unless it is nil.
	AuditStatus func(StatusWriteEvent)
	// Clock returns the time. The default is time.Now.
	Clock func() time.Time
}

// setDefaults sets the fields that are zero to their defaults.
func (o *Options) setDefaults() {
	o.Resync = cmp.Or(o.Resync, DefaultResync)
	o.WriteTime = cmp.Or(o.WriteTime, DefaultWriteTime)
	if o.Audit == nil {
		o.Audit = func(WriteEvent) {}
	}
	if o.AuditStatus == nil {
		o.AuditStatus = func(StatusWriteEvent) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Desired is the desired state of one object.
type Desired struct {
	// Document is the desired document; nil when A&AI must not hold one.
	Document *aai.Document
	// Held is true when the object must be neither written nor deleted, because too little is known about it.
	Held bool
	// Seen is when the change to this desired state was observed; zero when its lag must not be measured.
	Seen time.Time
}

// Change is a change of the desired state of a tenant.
type Change struct {
	// Desired are the objects whose desired state has changed.
	Desired map[aai.Key]Desired
	// Deletions are those of plan.Guards, all of them each time.
	Deletions map[plan.Partition]string
	// Existing are those of plan.Guards.
	Existing []string
}

// Syncer keeps the tenants of one A&AI in their desired state. It is safe for concurrent use; passes over one tenant run one after another. An
// installation must have only one Syncer: two would overwrite each other.
type Syncer struct {
	options Options
	// maxBulk is the maximum number of operations in a bulk request: lower than A&AI's default after A&AI has reported its limit.
	maxBulk atomic.Int32
	prober  *prober
	// takeoverEnd is the time after which no other syncer can write.
	takeoverEnd time.Time

	mu      sync.Mutex // guards the rest
	tenants map[aai.Tenant]*tenantState
	// vnfs holds the states about the modules of VNFs.
	vnfs map[string]*moduleState
}

// New returns a Syncer that has not read anything yet.
func New(o Options) *Syncer {
	o.setDefaults()
	s := &Syncer{options: o, takeoverEnd: o.Clock().Add(o.Takeover), prober: newProber(o.Client), tenants: map[aai.Tenant]*tenantState{}, vnfs: map[string]*moduleState{}}
	s.maxBulk.Store(client.MaxBulk)
	return s
}

// Sync makes one pass over a tenant: it makes A&AI hold the desired documents, which are of that tenant and of the data-owner of the
// installation, and no other documents of that data-owner, except for held ones. The cost of a pass depends on the number of changes, not of
// documents, unless it reads the tenant in full.
//
// changes returns the changes since its last call. The pass calls it at the beginning, after it has read the tenant in full, and after Wake
// while reading or writing takes long. These changes take precedence over the rest.
//
// An error that wraps an *aai.Error means that the pass could not finish because of A&AI or the connection to it. It is of kind Misconfigured
// when a person must repair the configuration, and otherwise of kind Retry; its NotBefore is the time of the next request. The report is complete
// nevertheless. Objects that A&AI rejects, and objects with a missing dependency, are in the report and are no error.
//
// Any other error means that a document does not belong to the tenant or the data-owner, or, with an empty report, that ctx ended during another
// pass over the tenant.
func (s *Syncer) Sync(ctx context.Context, tenant aai.Tenant, changes func() Change) (Report, error) {
	m := stateOf(s, s.tenants, tenant, newTenantState)
	if err := m.sem.Acquire(ctx, 1); err != nil {
		return Report{}, fmt.Errorf("cannot synchronize tenant %q: %w", tenant, err)
	}
	defer m.sem.Release(1)
	p := s.newPass(tenant, m, changes)
	p.run(ctx)
	s.prober.report(p.haltErr)
	return p.report(), p.err()
}

// Wake makes a running pass over a tenant receive changes if it takes long, because the next pass may begin much later. It does not block.
func (s *Syncer) Wake(tenant aai.Tenant) {
	select {
	case stateOf(s, s.tenants, tenant, newTenantState).wake <- struct{}{}:
	default:
	}
}

// Resync makes the next pass over a tenant read it again in full, and retry objects that wait or were rejected.
func (s *Syncer) Resync(tenant aai.Tenant) {
	stateOf(s, s.tenants, tenant, newTenantState).resync.Store(true)
}

// nextResync returns when the next full read is due after that at a time.
func (s *Syncer) nextResync(read time.Time) time.Time {
	if next := read.Add(s.options.Resync); read.IsZero() || !read.Before(s.takeoverEnd) || next.Before(s.takeoverEnd) {
		return next
	}
	return s.takeoverEnd
}

// stateOf returns the state of a tenant or VNF, which is created if there is none.
func stateOf[K comparable, S any](s *Syncer, all map[K]*S, key K, create func() *S) *S {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all[key] == nil {
		all[key] = create()
	}
	return all[key]
}
