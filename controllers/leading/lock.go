package leading

import (
	"context"
	"encoding/json"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock returns a lock for a manager, which has it from the first term of the gate on, and for ever. It is in memory only.
func (g *Gate) Lock() resourcelock.Interface { return &firstTerm{gate: g} }

// firstTerm is a lock that somebody else holds until the first term begins. Then whoever asks has it.
type firstTerm struct {
	gate *Gate

	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
}

// self is who asks for the lock, and others who hold it before.
const self, others = "self", "whoever leads"

// Get implements resourcelock.Interface.
func (l *firstTerm) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := resourcelock.LeaderElectionRecord{HolderIdentity: others, LeaseDurationSeconds: int(leaseDuration.Seconds()), RenewTime: metav1.Now()}
	select {
	case <-l.gate.first:
		if l.record == nil {
			return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, self)
		}
		record = *l.record
	default:
	}
	data, err := json.Marshal(record)
	return &record, data, err
}

// Create implements resourcelock.Interface.
func (l *firstTerm) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update implements resourcelock.Interface.
func (l *firstTerm) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

// RecordEvent implements resourcelock.Interface: the election that matters is another one.
func (*firstTerm) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (*firstTerm) Identity() string { return self }

// Describe implements resourcelock.Interface.
func (*firstTerm) Describe() string { return "the first term" }
