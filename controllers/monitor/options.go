package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
)

const (
	// LeaseName is the name of a monitor's Lease, which is the manager's leader-election Lease: it keeps a second monitor from writing, and
	// while it is renewed, the monitor is alive.
	LeaseName = "healthscope-monitor"
	// DefaultLeaseNamespace is the namespace of the Lease unless Options say otherwise.
	DefaultLeaseNamespace = "healthscope-system"
	// DefaultLeaseDuration is how long a monitor that died keeps the Lease unless Options say otherwise.
	DefaultLeaseDuration = 15 * time.Second
)

// Options of the monitor, whose values the configuration has validated. The zero value takes all defaults.
type Options struct {
	// LabelKeys are the labels that tie objects to bundles by their values. The default is k8spluginv1alpha1.LabelDeploymentID.
	LabelKeys []string
	// Kinds are the kinds to report, each in the version to read it in. ResourceBundleStates are not allowed. The default is DefaultKinds.
	Kinds []schema.GroupVersionKind
	// Discover adds every other kind that the cluster serves, also later, in its
	// preferred version, but for a few (see excludedKinds). The default is false.
	Discover bool
	// Namespaces are those to look at. Empty means all.
	Namespaces []string
	// TrustedNamespaces are those whose bundles also get objects of all other namespaces that are looked at, and of the cluster;
	// CertificateSigningRequests are then among Kinds. The default is none.
	TrustedNamespaces []string
	// AllowedLabels are the keys of labels that are copied from objects into status.resources of their bundle. The default is none.
	AllowedLabels []string
	// ListBudget is how many bytes of whole objects a bundle holds; see bundle.Options.
	ListBudget int
	// HardLimit is how many bytes a bundle may take. The default is bundle.DefaultHardLimit.
	HardLimit int
	// CreateBundles is the key of a label: the monitor makes a bundle for each of its values that an object carries, in the object's
	// namespace. The key is among LabelKeys then. Empty, which is the default, means that others make bundles.
	CreateBundles string
	// Rules are the user's own health rules, besides the program's. The default is none.
	Rules rules.UserRules
	// RulesChanged calls a function whenever Rules say something else, so that
	// all bundles are looked at again. The default is that they never do.
	RulesChanged func(func())
	// Registerer takes the monitor's metrics. The default is controller-runtime's registry.
	Registerer prometheus.Registerer
	// LeaseNamespace is the namespace of the Lease. The default is DefaultLeaseNamespace.
	LeaseNamespace string
	// LeaseDuration is how long a monitor that died keeps the Lease, in whole seconds. It renews it every fifth of that. The default is
	// DefaultLeaseDuration.
	LeaseDuration time.Duration
	// Spans makes spans of reconciles. The default is that there are none.
	Spans trace.TracerProvider
	// Clock gives the times in status and paces writes. The default is the real clock.
	Clock clock.PassiveClock
	// WatchClock is the clock of watches and of discovery. The default is the real clock.
	WatchClock clock.WithTickerAndDelayedExecution
}

// certificateSigningRequest is the kind without namespaces that is reported in trusted namespaces by default.
var certificateSigningRequest = schema.GroupVersionKind{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}

// DefaultKinds are the kinds that are reported by default.
func DefaultKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "PersistentVolumeClaim"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	}
}

// complete returns the options with defaults filled in and duplicates removed.
func (o Options) complete() Options {
	if len(o.LabelKeys) == 0 {
		o.LabelKeys = []string{k8spluginv1alpha1.LabelDeploymentID}
	}
	if len(o.Kinds) == 0 {
		o.Kinds = DefaultKinds()
	}
	o.LeaseNamespace = cmp.Or(o.LeaseNamespace, DefaultLeaseNamespace)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.HardLimit = cmp.Or(o.HardLimit, bundle.DefaultHardLimit)
	o.Clock = cmp.Or[clock.PassiveClock](o.Clock, clock.RealClock{})
	o.WatchClock = cmp.Or[clock.WithTickerAndDelayedExecution](o.WatchClock, clock.RealClock{})
	o.Registerer = cmp.Or[prometheus.Registerer](o.Registerer, metrics.Registry)
	if o.CreateBundles != "" {
		o.LabelKeys = append(slices.Clone(o.LabelKeys), o.CreateBundles)
	}
	if len(o.TrustedNamespaces) > 0 {
		o.Kinds = append(slices.Clone(o.Kinds), certificateSigningRequest)
	}
	o.LabelKeys = distinct(o.LabelKeys)
	o.Kinds = distinct(o.Kinds)
	o.Namespaces = distinct(o.Namespaces)
	o.TrustedNamespaces = distinct(o.TrustedNamespaces)
	return o
}

// distinct returns the values without repetitions, in their order.
func distinct[T comparable](values []T) []T {
	var kept []T
	for _, value := range values {
		if !slices.Contains(kept, value) {
			kept = append(kept, value)
		}
	}
	return kept
}
