package fleet

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Options configure Setup.
type Options struct {
	// ClusterName is the name of the hub's own cluster.
	ClusterName string
	// Policy holds the time limits by which resources are judged.
	Policy healthscope.Policy
	// History returns the judged states from before a restart of objects whose monitors do not report times. The default is none.
	History func(context.Context) (map[healthscope.Key]Observation, error)
	// HealthChecks are the user's rules, or nil.
	HealthChecks rules.UserRules
	// Objects is attached to all clusters, so that it can watch objects there; nil when no objects are watched.
	Objects *Objects
	// Liveness configures how the hub checks that what it knows of its clusters is current. Without it, a cluster that was read once stays Connected.
	Liveness *Liveness
	// Members makes the hub connect to other clusters. Without it, the hub's own cluster is the only one.
	Members *Members
	// Budget limits how much of the hub's memory clusters may use. The default is no limit.
	Budget Budget
	// Clock tells the time. The default is the real clock.
	Clock clock.WithTickerAndDelayedExecution
}

// Liveness configures how a hub checks that what it knows of its clusters is current.
type Liveness struct {
	// MonitorNamespace is the namespace of the monitor's Lease in every cluster.
	MonitorNamespace string
	// Timeout is how long a cluster may take to answer before it counts as unreachable.
	Timeout time.Duration
}

// Members configures where a hub finds the kubeconfigs of other clusters.
type Members struct {
	// Namespace is the namespace of the Secrets with kubeconfigs. The hub reads Secrets in no other namespace.
	Namespace string
	// Parse parses a kubeconfig, which is not trusted.
	Parse func([]byte) (*rest.Config, error)
}

// environment is what the hub and all of its members share.
type environment struct {
	options Options
	view    *View
	clock   clock.WithTickerAndDelayedExecution
	// config is the client configuration of the hub's own cluster.
	config *rest.Config
	// events records events on the Secrets of members.
	events secretEvents
	// quotas counts what the hub holds of all clusters.
	quotas quotas
}

// timeout is the timeout of an answer of a cluster; zero without Options.Liveness.
func (e *environment) timeout() time.Duration {
	if e.options.Liveness == nil {
		return 0
	}
	return e.options.Liveness.Timeout
}

// configOf returns the client configuration of a spec.
func (e *environment) configOf(spec clusterSpec) (*rest.Config, error) {
	if spec.secret == nil {
		return rest.CopyConfig(e.config), nil
	}
	if spec.problem != "" {
		return nil, errors.New(spec.problem)
	}
	return e.options.Members.Parse(spec.kubeconfig)
}
