package fleet

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// BundleKey identifies a bundle among those of all clusters.
type BundleKey struct {
	// Cluster is the name of the cluster the bundle is in.
	Cluster string
	// Namespace is its namespace.
	Namespace string
	// Name is its name.
	Name string
}

// Compare sorts keys by cluster, namespace and name.
func (k BundleKey) Compare(o BundleKey) int {
	return cmp.Or(strings.Compare(k.Cluster, o.Cluster), strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Bundle is a ResourceBundleState of one cluster, judged. It is never changed once it is in a View.
type Bundle struct {
	BundleKey
	// UID is the uid of the ResourceBundleState, and ResourceVersion its version that was judged.
	UID             types.UID
	ResourceVersion string
	// App is the name of the application the bundle reports.
	App string
	// Labels are the labels of the ResourceBundleState.
	Labels map[string]string
	// Own is true when a HealthScope monitor fills the bundle.
	Own bool
	// Observed is true when a monitor has reported on the bundle.
	Observed bool
	// Truncated is true when the bundle leaves out resources to keep within its size.
	Truncated bool
	// Malformed names the fields of the bundle that cannot be read.
	Malformed []string
	// Members are the bundle's resources.
	Members []healthscope.Member
	// Unlisted counts, by state, the resources that a truncated bundle counts and does not list. Time limits do not apply to them.
	Unlisted healthscope.Summary
	// WrittenAt is when the bundle was last written, by its cluster's clock; zero when unknown.
	WrittenAt time.Time
	// OutdatedSince is since when the bundle no longer matches its objects, because the monitor that fills it has not written a change of theirs; zero while it matches.
	OutdatedSince time.Time
	// Stale is true while the bundle is stale, because of its cluster's state or because it does not match its objects. Members are then what healthscope.MarkUnreachable returns, and all Unlisted are Unknown.
	Stale bool
}

// StaleIn returns the bundle as a view shows it while its cluster is in a state that makes it stale.
func (b *Bundle) StaleIn(s ClusterState) *Bundle {
	return b.stale(s.Reachability.Reason(), s.Problem(), s.Since)
}

// stale returns the bundle as a view shows it while it is stale.
func (b *Bundle) stale(reason healthscope.Reason, problem string, since time.Time) *Bundle {
	shown := *b
	shown.Stale = true
	shown.Members = healthscope.MarkUnreachable(b.Members, reason, problem, since)
	shown.Unlisted = b.Unlisted.MarkUnreachable()
	return &shown
}

// OutdatedMessage returns a message that explains why the bundle does not match its objects.
func (b *Bundle) OutdatedMessage() string {
	return fmt.Sprintf("cluster %q: the objects of bundle %q have changed, and its monitor has not written that", b.Cluster, b.Namespace+"/"+b.Name)
}

// identifyingLabels are the keys of labels that identify what a bundle reports in all namespaces.
var identifyingLabels = map[string]bool{k8spluginv1alpha1.LabelDeploymentID: true, status.InstanceLabel: true}

// labelKey is a key of the label index: a label in a namespace. A labelKey without a key stands for all bundles of the namespace.
type labelKey struct{ namespace, key, value string }

// labelKeys returns the keys of the bundle in the label index: its labels in its namespace, and its identifying labels without a namespace.
func (b *Bundle) labelKeys() iter.Seq[labelKey] {
	return func(yield func(labelKey) bool) {
		if !yield(labelKey{b.Namespace, "", ""}) {
			return
		}
		for key, value := range b.Labels {
			if !yield(labelKey{b.Namespace, key, value}) || identifyingLabels[key] && !yield(labelKey{"", key, value}) {
				return
			}
		}
	}
}

// bundlesEqual reports whether two bundles are equal to readers of the view.
func bundlesEqual(a, b *Bundle) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.App == b.App && a.Own == b.Own && a.Stale == b.Stale && a.OutdatedSince.Equal(b.OutdatedSince) && a.Unlisted == b.Unlisted && a.Observed == b.Observed && a.Truncated == b.Truncated &&
		slices.Equal(a.Malformed, b.Malformed) && maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Members, b.Members, membersEqual)
}

// sameVersion reports whether two bundles are the same ResourceBundleState in the same version, and both Stale or neither.
func sameVersion(a, b *Bundle) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.Stale == b.Stale
}

func membersEqual(a, b healthscope.Member) bool {
	if !a.Since.Equal(b.Since) || !progressEqual(a.Progress, b.Progress) {
		return false
	}
	a.Since, b.Since, a.Progress, b.Progress = time.Time{}, time.Time{}, nil, nil
	return reflect.DeepEqual(a, b)
}

func progressEqual(a, b *healthscope.Progress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
