package sync

import (
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
	// DefaultParallelism is the number of requests under way at the same time. Writes to objects of one VNF contend for it inside A&AI, so more is not faster.
	DefaultParallelism = 4
	// DefaultResync is how often a tenant is read again in full.
	DefaultResync = 10 * time.Minute
	// DefaultDependencyInterval is how long an object waits for what it depends on before it is tried again.
	DefaultDependencyInterval = 30 * time.Second
	// DefaultWriteTime is how long a pass may take to write.
	DefaultWriteTime = 2 * time.Minute
	// DefaultDeletionPause is how long deletions beyond the limit wait for their next time.
	DefaultDeletionPause = time.Minute
)

// Options are the parts and the configuration of a Syncer.
type Options struct {
	// Client speaks to A&AI.
	Client *client.Client
	// Plan says what is ours in A&AI.
	Plan plan.Options
	// Parallelism is the number of requests under way at the same time, without those that read a tenant in full. The default is DefaultParallelism.
	Parallelism int
	// Resync is how often a tenant is read again in full, so that what others changed is repaired. The default is DefaultResync.
	Resync time.Duration
	// DependencyInterval is how long an object waits for its tenant, or for the target of a relationship, before it is tried again. The default is DefaultDependencyInterval.
	DependencyInterval time.Duration
	// DeletionPause is how long deletions beyond the limit wait for their next time. The default is DefaultDeletionPause.
	DeletionPause time.Duration
	// WriteTime is how long a pass may take to write, once a tenant has been read in full as far as it has to be: that takes as long as it takes. What is not written by then is written in the next pass; when A&AI has answered any, no request begins in the last quarter of the time, which should be longer than a request may take, and that is no error. The default is DefaultWriteTime.
	WriteTime time.Duration
	// Takeover is how long a syncer of another process may still have written after this one was made. Then each tenant is read again in full.
	Takeover time.Duration
	// Audit is called after every write that was tried, unless it is nil.
	Audit func(WriteEvent)
	// AuditStatus is called after every change of a module's operational-status that was tried, unless it is nil.
	AuditStatus func(StatusWriteEvent)
	// Clock returns the time. The default is time.Now.
	Clock func() time.Time
}

// setDefaults fills in what is left out.
func (o *Options) setDefaults() {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Resync, DefaultResync}, {&o.DependencyInterval, DefaultDependencyInterval}, {&o.DeletionPause, DefaultDeletionPause}, {&o.WriteTime, DefaultWriteTime},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
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

// Desired is what is to become of one object.
type Desired struct {
	// Document is what A&AI is to hold; nil for nothing.
	Document *aai.Document
	// Held is true when the object is neither written nor deleted for now, because too little is known about it.
	Held bool
	// Seen is when it was seen that the object is to be like this; zero when that is of no interest.
	Seen time.Time
}

// Change is what a caller wants of a tenant, beyond what it has wanted before.
type Change struct {
	// Desired are the objects of which something else is wanted than before.
	Desired map[aai.Key]Desired
	// Deletions are those of plan.Guards, all of them each time.
	Deletions map[plan.Partition]string
	// Existing are those of plan.Guards.
	Existing []string
}

// Syncer keeps the tenants of one A&AI as desired. It is safe for concurrent use; passes over one tenant take turns. There must be one Syncer for an installation: two would overwrite each other.
type Syncer struct {
	options Options
	// maxBulk is how many operations a bulk request may have: fewer than A&AI's default when it has said so.
	maxBulk atomic.Int32
	prober  *prober
	// takeoverEnd is the time after which no other syncer can still be writing.
	takeoverEnd time.Time

	mu      sync.Mutex // guards the rest
	tenants map[aai.Tenant]*tenantState
	// vnfs is what is remembered about the modules of VNFs.
	vnfs map[string]*moduleState
}

// New returns a Syncer that knows nothing yet.
func New(o Options) *Syncer {
	o.setDefaults()
	s := &Syncer{options: o, takeoverEnd: o.Clock().Add(o.Takeover), prober: newProber(o.Client), tenants: map[aai.Tenant]*tenantState{}, vnfs: map[string]*moduleState{}}
	s.maxBulk.Store(client.MaxBulk)
	return s
}

// Sync makes one pass over a tenant: it makes A&AI hold the desired documents, all
// of that tenant and of our data-owner, and nothing else of ours, except where
// something is held. A pass costs as much as there is to do, however much the
// tenant holds; only one that reads the tenant in full costs more.
//
// changes returns what has changed since it was called last. The pass calls it when
// it begins, again when it has read the tenant in full, and after Wake while that or
// writing takes long: what changes then goes before the rest.
//
// An error that wraps an *aai.Error means that the pass could not do all it
// should because of A&AI or of the way to it: it is of kind Misconfigured when a
// person has to repair the configuration, else of kind Retry; its NotBefore says
// when A&AI is asked again. The report is complete nevertheless. What A&AI will not take,
// and what waits for something missing, is in the report and is no error.
//
// Any other error means that a document does not belong here, or, with an empty
// report, that ctx ended while another pass had its turn.
func (s *Syncer) Sync(ctx context.Context, tenant aai.Tenant, changes func() Change) (Report, error) {
	m := s.tenantState(tenant)
	if err := m.lock(ctx); err != nil {
		return Report{}, fmt.Errorf("cannot synchronize tenant %q: %w", tenant, err)
	}
	defer m.unlock()
	p := s.newPass(tenant, m, changes)
	p.run(ctx)
	s.prober.report(p.haltErr)
	return p.report(), p.err()
}

// Wake makes the pass over a tenant that is under way, if there is one, take in what has changed, when A&AI takes long: the
// next pass may be far away then. It does not block.
func (s *Syncer) Wake(tenant aai.Tenant) {
	select {
	case s.tenantState(tenant).wake <- struct{}{}:
	default:
	}
}

// Resync makes the next pass over a tenant read it again in full, and try again what was put off or given up.
func (s *Syncer) Resync(tenant aai.Tenant) {
	s.tenantState(tenant).resync.Store(true)
}

// nextResync returns when the next full read is due.
func (o *Options) nextResync(read, takeoverEnd time.Time) time.Time {
	if next := read.Add(o.Resync); read.IsZero() || !read.Before(takeoverEnd) || next.Before(takeoverEnd) {
		return next
	}
	return takeoverEnd
}

// tenantState returns what is remembered about a tenant.
func (s *Syncer) tenantState(tenant aai.Tenant) *tenantState {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.tenants[tenant]
	if m == nil {
		m = newTenantState()
		s.tenants[tenant] = m
	}
	return m
}
