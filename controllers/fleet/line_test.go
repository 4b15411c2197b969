package fleet

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// TestAConnectionHasItsNameForItself has a member that is removed and added again while its connection is still about to
// end. With the name of that one, the new one would be refused, or ended in its place.
func TestAConnectionHasItsNameForItself(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := k8spluginv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &hub{
		view: newView("local"), clock: clock.RealClock{}, config: &rest.Config{Host: "https://127.0.0.1:1"}, clusters: clusters.New[*connection](),
		connect: connectOptions{scheme: scheme, transform: func(string) toolscache.TransformFunc { return func(object any) (any, error) { return object, nil } }},
	}
	h.clusters.WaitCacheTimeout = forEver
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lines []*line
	var members []*member
	for range 2 {
		m := newMember(h, "edge", false, logr.Discard())
		l, err := m.dial(ctx, wish{name: "edge"})
		if err != nil {
			t.Fatal(err)
		}
		lines, members = append(lines, l), append(members, m)
	}
	if lines[0].name == lines[1].name {
		t.Fatalf("two connections have the name %q", lines[0].name)
	}
	cancel()
	for _, m := range members {
		m.running.Wait()
	}
}
