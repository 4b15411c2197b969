package sync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// Defaults of Options.
const (
	// DefaultParallelism is the number of objects written at the same time. Writes to objects of one VNF contend for it inside A&AI, so more is not faster.
	DefaultParallelism = 4
	// DefaultResync is how often a tenant is read again in full.
	DefaultResync = 10 * time.Minute
	// DefaultParkInterval is how long an object waits for what it depends on before it is tried again.
	DefaultParkInterval = 30 * time.Second
	// DefaultMaxAge is how old the knowledge of a document may be when its labels are written.
	DefaultMaxAge = 5 * time.Second
)

// Options are the parts and the configuration of a Syncer.
type Options struct {
	// Client speaks to A&AI.
	Client *client.Client
	// Plan says what is ours in A&AI.
	Plan plan.Options
	// Parallelism is the number of objects written at the same time. The default is DefaultParallelism.
	Parallelism int
	// Resync is how often a tenant is read again in full, so that what others changed is repaired. The default is DefaultResync.
	Resync time.Duration
	// ParkInterval is how long an object waits for its tenant, or for the target of a relationship, before it is tried again. The default is DefaultParkInterval.
	ParkInterval time.Duration
	// MaxAge is how old the knowledge of a document may be when its labels are written: an older one is read again first, because a patch replaces all labels and would drop those that others have added since. The default is DefaultMaxAge.
	MaxAge time.Duration
	// Clock tells the time. The default is time.Now.
	Clock func() time.Time
}

// setDefaults fills in what is left out.
func (o *Options) setDefaults() {
	if o.Parallelism <= 0 {
		o.Parallelism = DefaultParallelism
	}
	if o.Resync <= 0 {
		o.Resync = DefaultResync
	}
	if o.ParkInterval <= 0 {
		o.ParkInterval = DefaultParkInterval
	}
	if o.MaxAge <= 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Syncer keeps the tenants of one A&AI as desired. It is safe for concurrent use; passes over one tenant take turns. There must be one Syncer for an installation: two would overwrite each other.
type Syncer struct {
	options Options

	mu      sync.Mutex // guards tenants
	tenants map[aai.Tenant]*memory
}

// New returns a Syncer that knows nothing yet.
func New(o Options) *Syncer {
	o.setDefaults()
	return &Syncer{options: o, tenants: map[aai.Tenant]*memory{}}
}

// Sync makes one pass over a tenant: it makes A&AI hold the desired documents,
// all of that tenant and of our data-owner, and nothing else of ours, except
// where something is held.
//
// An error that wraps an *aai.Error means that the pass could not do all it
// should because of A&AI or of the way to it: it is of kind Stop when a person
// has to mend the configuration, else of kind Retry, with the RetryAfter that
// A&AI asked for. The report is complete nevertheless. What A&AI will not take,
// and what waits for something missing, is in the report and is no error.
//
// Any other error, with an empty report, means that there was no pass: a
// document does not belong here, or ctx ended while another pass had its turn.
func (s *Syncer) Sync(ctx context.Context, tenant aai.Tenant, desired map[aai.Key]aai.Document, holds plan.Holds) (Report, error) {
	if err := s.check(tenant, desired); err != nil {
		return Report{}, err
	}
	m := s.memory(tenant)
	if err := m.lock(ctx); err != nil {
		return Report{}, fmt.Errorf("cannot synchronise tenant %q: %w", tenant, err)
	}
	defer m.unlock()
	p := &pass{
		options: s.options,
		tenant:  tenant,
		memory:  m,
		desired: desired,
		holds:   holds,
		settled: map[aai.Key]bool{},
		missing: map[string]error{},
		acked:   map[aai.Key]time.Time{},
	}
	p.run(ctx)
	return p.report(), p.err()
}

// Forget makes the next pass over a tenant read it again in full, and try again what was put off or given up.
func (s *Syncer) Forget(tenant aai.Tenant) {
	s.memory(tenant).forgotten.Store(true)
}

// check refuses documents that would end up in another place, or in nobody's hands.
func (s *Syncer) check(tenant aai.Tenant, desired map[aai.Key]aai.Document) error {
	for key, d := range desired {
		switch {
		case key.Tenant != tenant:
			return fmt.Errorf("cannot synchronise tenant %q: document %q is of tenant %q", tenant, key.ID, key.Tenant)
		case key.ID != d.ID:
			return fmt.Errorf("cannot synchronise tenant %q: document %q has the id %q", tenant, key.ID, d.ID)
		case d.DataOwner != s.options.Plan.Owner:
			return fmt.Errorf("cannot synchronise tenant %q: document %q has the data-owner %q, not %q", tenant, key.ID, d.DataOwner, s.options.Plan.Owner)
		}
	}
	return nil
}

// memory returns what is remembered about a tenant.
func (s *Syncer) memory(tenant aai.Tenant) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.tenants[tenant]
	if m == nil {
		m = newMemory()
		s.tenants[tenant] = m
	}
	return m
}
