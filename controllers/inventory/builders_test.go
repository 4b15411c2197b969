package inventory

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// noon is the time of the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// tenant is the tenant of the resources of namespace shop. shed is that of namespace back.
var (
	tenant = aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "t"}
	shed   = aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "shed"}
)

// options returns the mapping of the tests: Services and Deployments go to A&AI, and namespace shop may link to vnf-1.
func options() mapping.Options {
	return mapping.Options{
		Installation: "lab", LabelPrefix: "hs/", SelflinkBase: "http://hs", Kinds: []string{"Service", "Deployment.apps"},
		Regions: []configv1alpha1.Region{
			{Cluster: "*", Namespace: "back", CloudOwner: "o", CloudRegionID: "r", TenantID: "shed"},
			{Cluster: "*", Namespace: "shop", CloudOwner: "o", CloudRegionID: "r", TenantID: "t"},
		},
		Links: []configv1alpha1.LinkPolicy{{Namespace: "shop", GenericVNFIDs: []string{"vnf-1"}}},
	}
}

// member returns a judged Service of a namespace of cluster edge.
func member(namespace, name string, state healthscope.State) healthscope.Member {
	return healthscope.Member{Result: healthscope.Result{
		Key:     healthscope.Key{Cluster: "edge", Kind: "Service", Namespace: namespace, Name: name},
		Version: "v1", State: state, Since: noon,
	}}
}

// keyOf returns the key of a member of the tests in A&AI.
func keyOf(m healthscope.Member) aai.Key {
	return mapping.Map(mapping.Resource{Member: m}, options()).Key
}

// bundleMember returns the member of a scope in place of a bundle that it cannot use.
func bundleMember(reason healthscope.Reason) healthscope.Member {
	return healthscope.Member{Result: healthscope.Result{
		Key:   healthscope.Key{Cluster: "edge", Group: "k8splugin.io", Kind: k8spluginv1alpha1.ResourceBundleStateKind, Namespace: "shop", Name: "7-web"},
		State: healthscope.Unknown, Reason: reason,
	}}
}

// placed returns members of a scope.
func placed(members ...healthscope.Member) []scope.AppMember {
	list := make([]scope.AppMember, len(members))
	for i, m := range members {
		list[i] = scope.AppMember{Member: &m}
	}
	return list
}

// linkedTo links members to a VNF.
func linkedTo(vnf string, members ...scope.AppMember) []scope.AppMember {
	for i := range members {
		members[i].Links = &corev1alpha2.InventoryLinks{GenericVNFID: vnf}
	}
	return members
}

// judgedScopes are judgements by namespace/name.
type judgedScopes map[types.NamespacedName]*scope.Judged

func (j judgedScopes) Get(name types.NamespacedName) *scope.Judged { return j[name] }

// judged returns the judgement of generation 1 of a scope.
func judged(members ...scope.AppMember) *scope.Judged {
	return &scope.Judged{Generation: 1, Members: members}
}

func name(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// existing returns a scope without apps.
func existing(name types.NamespacedName, created time.Time, generation int64) *corev1alpha2.HealthScope {
	return &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, Generation: generation, CreationTimestamp: metav1.NewTime(created),
	}}
}

// scopeUpdated takes in a scope without apps.
func (i *inputs) scopeUpdated(name types.NamespacedName, created time.Time, generation int64) {
	i.scopeChanged(existing(name, created, generation))
}

// bundleList are all bundles.
type bundleList []*fleet.Bundle

// oneCluster is a fleet of cluster edge, which has been read.
type oneCluster struct{}

func (oneCluster) WaitSynced(context.Context) error { return nil }
func (oneCluster) Complete() bool                   { return true }
func (oneCluster) States() []fleet.ClusterState {
	return []fleet.ClusterState{{Name: "edge", Reachability: fleet.Connected}}
}

// noInputs returns empty inputs.
func noInputs() *inputs {
	return newInputs(options(), configv1alpha1.SelectScoped, judgedScopes{}, nil)
}

// newBundle returns a bundle of namespace shop that a monitor has filled.
func newBundle(members ...healthscope.Member) *fleet.Bundle {
	return &fleet.Bundle{BundleKey: fleet.BundleKey{Cluster: "edge", Namespace: "shop", Name: "7-web"}, Observed: true, Members: members}
}

func changed(change func(*fleet.Bundle)) *fleet.Bundle {
	b := newBundle()
	change(b)
	return b
}

func withReason(m healthscope.Member, reason healthscope.Reason) healthscope.Member {
	m.Reason = reason
	return m
}

// bundleChange is the addition, change or removal of a bundle. Old is nil for an addition, and New for a removal.
type bundleChange struct{ Old, New *fleet.Bundle }

// to applies the change to inputs.
func (c bundleChange) to(i *inputs) {
	b := c.New
	if b == nil {
		b = c.Old
	}
	i.bundleChanged(b.BundleKey, c.New)
}
