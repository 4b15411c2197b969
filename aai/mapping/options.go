package mapping

import (
	"path"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/aai"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

// Wildcard matches every cluster, namespace or VNF in Options. In a pattern such as provider+edge* it matches any part of
// the name, as in path.Match.
const Wildcard = "*"

// Options are the configuration of the mapping. They have no defaults: package v1alpha1 sets the defaults of the configuration file.
type Options struct {
	// Installation is the name of the installation. It is part of every id and of the data-owner.
	Installation string
	// LabelPrefix is put before the names of the reserved labels, such as healthscope.core.oam.dev/.
	LabelPrefix string
	// LabelKeys are the keys of the labels that are copied from a resource to its document.
	LabelKeys []string
	// SelflinkBase is the base URL of the status REST server, without a path.
	SelflinkBase string
	// Kinds are the kinds that are written to A&AI: Kind.group, or Kind for the core group. Secrets are never written.
	Kinds []string
	// Regions map clusters and namespaces to tenants. The first match applies.
	Regions []configv1alpha1.Region
	// Links list the VNFs to which scopes of a namespace may link. A VNF that no entry allows is not linked.
	Links []configv1alpha1.LinkPolicy
}

// FromConfig returns the options for the inventory section of a configuration, whose defaults must be set, with labelKeys as LabelKeys.
func FromConfig(i *configv1alpha1.Inventory, labelKeys []string) Options {
	return Options{
		Installation: i.Installation,
		LabelPrefix:  i.LabelPrefix,
		LabelKeys:    labelKeys,
		SelflinkBase: i.SelflinkBase,
		Kinds:        i.Kinds,
		Regions:      i.Regions,
		Links:        i.Links,
	}
}

// Owner returns the data-owner of all documents of the installation.
func (o Options) Owner() string { return "healthscope-" + o.Installation }

// Tenants returns every tenant to which a resource can be mapped, sorted. It does not depend on the existing clusters, so that documents of a removed cluster are found.
func (o Options) Tenants() []aai.Tenant {
	tenants := make([]aai.Tenant, 0, len(o.Regions))
	for _, r := range o.Regions {
		tenants = append(tenants, tenantOf(r))
	}
	slices.SortFunc(tenants, aai.Tenant.Compare)
	return slices.Compact(tenants)
}

// tenant returns the tenant of the resources of a cluster's namespace, and false when no region matches.
func (o Options) tenant(cluster, namespace string) (aai.Tenant, bool) {
	i := slices.IndexFunc(o.Regions, func(r configv1alpha1.Region) bool {
		return matches(r.Cluster, cluster) && matches(r.Namespace, namespace)
	})
	if i < 0 {
		return aai.Tenant{}, false
	}
	return tenantOf(o.Regions[i]), true
}

func tenantOf(r configv1alpha1.Region) aai.Tenant {
	return aai.Tenant{CloudOwner: r.CloudOwner, CloudRegionID: r.CloudRegionID, TenantID: r.TenantID}
}

// includesKind reports whether resources of a kind are written to A&AI.
func (o Options) includesKind(group, kind string) bool {
	if group == "" && kind == "Secret" {
		return false
	}
	return slices.Contains(o.Kinds, strings.TrimSuffix(kind+"."+group, "."))
}

// mayLink reports whether scopes of a namespace may link to a VNF.
func (o Options) mayLink(namespace, vnfID string) bool {
	return slices.ContainsFunc(o.Links, func(l configv1alpha1.LinkPolicy) bool {
		return matches(l.Namespace, namespace) && slices.ContainsFunc(l.GenericVNFIDs, func(id string) bool { return matches(id, vnfID) })
	})
}

// matches reports whether a pattern matches a name. An invalid pattern matches only itself.
func matches(pattern, value string) bool {
	if pattern == Wildcard || pattern == value {
		return true
	}
	matched, err := path.Match(pattern, value)
	return err == nil && matched
}
