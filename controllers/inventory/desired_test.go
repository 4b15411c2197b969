package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// TestUnjudgedScopeHoldsOnlyItsNamespace has an oldest scope that waits, as for a cluster that is down. The resources of other
// scopes go to A&AI, unless bundles of its namespace may contain them.
func TestUnjudgedScopeHoldsOnlyItsNamespace(t *testing.T) {
	web := member("shop", "web", healthscope.Ready)
	for _, c := range []struct {
		waiting types.NamespacedName
		trusted []string
		want    bool
	}{
		{waiting: name("back", "a")},
		{waiting: name("back", "a"), trusted: []string{"back"}, want: true},
		{waiting: name("shop", "a"), want: true},
		{waiting: name("shop", "z")},
	} {
		j := judgedScopes{name("shop", "b"): judged(placed(web)...)}
		i := filled(j, map[types.NamespacedName]int64{c.waiting: 1, name("shop", "b"): 1}, nil, configv1alpha1.SelectScoped)
		i.trusted = c.trusted
		if w := i.take(tenant, oneCluster{}).Desired[keyOf(web)]; w.Held != c.want || w.Document == nil {
			t.Errorf("while %q waits, with the trusted namespaces %q, %+v is desired; want it held: %t", c.waiting, c.trusted, w, c.want)
		}
	}
}
