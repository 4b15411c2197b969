package enrol

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
)

const (
	// publishInterval is the pause before each write, which coalesces changes.
	publishInterval = 2 * time.Second
	// publishTimeout is the deadline of one attempt to write.
	publishTimeout = 10 * time.Second
	// maxPublishBackoff is the longest pause after a failed attempt.
	maxPublishBackoff = time.Minute
)

// States gives the states of a hub's clusters. fleet.View implements it.
type States interface {
	// States returns the states of all clusters, sorted by name.
	States() []fleet.ClusterState
	// RejectedSecrets returns the Secrets that cannot have the names that they ask for.
	RejectedSecrets() []fleet.RejectedSecret
	// Subscribe returns a subscription to changes until cancel is called.
	Subscribe(topics fleet.Topic) (s *fleet.Subscription, cancel func())
}

// publisher writes the states of clusters to a ConfigMap, on the replica that
// leads, when they have changed, and at most once in two seconds.
type publisher struct {
	// reader reads without a cache.
	reader    client.Reader
	writer    client.Writer
	states    States
	namespace string
	lease     ObjectName
	logger    logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*publisher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it publishes until ctx ends.
func (p *publisher) Start(ctx context.Context) error {
	changes, cancel := p.states.Subscribe(fleet.Clusters)
	defer cancel()
	for pause := publishInterval; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		if err := p.publish(ctx); err != nil {
			pause = min(2*pause, maxPublishBackoff)
			p.logger.Error(err, "Cannot publish the states of clusters", "retryIn", pause.String())
			continue
		}
		pause = publishInterval
		select {
		case <-changes.Ready():
			changes.Take() // All states are written together.
		case <-ctx.Done():
			return nil
		}
	}
}

// publish writes the ConfigMap if its content differs from the states.
func (p *publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	data, err := newDocument(p.lease, p.states.States(), p.states.RejectedSecrets()).encode()
	if err != nil {
		return errors.Wrap(err, "cannot encode the states")
	}
	published := &corev1.ConfigMap{}
	err = p.reader.Get(ctx, types.NamespacedName{Namespace: p.namespace, Name: ConfigMapName}, published)
	if apierrors.IsNotFound(err) {
		published = &corev1.ConfigMap{ObjectMeta: managedMeta(p.namespace, ConfigMapName), Data: map[string]string{documentKey: string(data)}}
		return errors.Wrapf(p.writer.Create(ctx, published), "cannot create ConfigMap %q", p.namespace+"/"+ConfigMapName)
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read ConfigMap %q", p.namespace+"/"+ConfigMapName)
	}
	if published.Data[documentKey] == string(data) {
		return nil
	}
	published.Data = map[string]string{documentKey: string(data)}
	return errors.Wrapf(p.writer.Update(ctx, published), "cannot change ConfigMap %q", p.namespace+"/"+ConfigMapName)
}
