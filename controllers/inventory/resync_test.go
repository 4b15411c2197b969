package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/healthscope/healthscope/aai"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

func TestTenantsOfAScope(t *testing.T) {
	cases := map[string]struct {
		name     types.NamespacedName
		judged   judgedScopes
		clusters []string
		want     []aai.Tenant
	}{
		"where its namespace goes":         {name: shop, clusters: []string{"edge", "core"}, want: []aai.Tenant{tenant}},
		"where its members are too":        {name: shop, judged: judgedScopes{shop: judged(placed(member("back", "db", healthscope.Ready))...)}, clusters: []string{"edge"}, want: []aai.Tenant{shed, tenant}},
		"in clusters that are gone":        {name: shop, judged: judgedScopes{shop: judged(placed(member("shop", "web", healthscope.Ready))...)}, want: []aai.Tenant{tenant}},
		"nowhere, without a region for it": {name: name("elsewhere", "x"), clusters: []string{"edge"}},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			i := filled(c.judged, nil, nil, configv1alpha1.SelectScoped)
			if diff := cmp.Diff(c.want, i.tenantsOf(c.name, c.clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestResyncAnnotationTriggersOnEachNewValue(t *testing.T) {
	withValue := func(value string) *corev1alpha2.HealthScope {
		s := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", Annotations: map[string]string{"other": value}}}
		if value != "" {
			s.Annotations[AnnotationResync] = value
		}
		return s
	}
	cases := map[string]struct {
		before, after string
		want          int
	}{
		"the first value":        {"", "1", 1},
		"another value":          {"2026-11-20T12:00:00Z", "2026-11-20T11:00:00Z", 1},
		"the same value":         {"1", "1", 0},
		"no value":               {"", "", 0},
		"the value is taken off": {"1", "", 0},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			existed := 0
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second))
			defer queue.ShutDown()
			h := scopeHandlers[string]{
				changed: func(*corev1alpha2.HealthScope) { existed++ },
				resync:  func(n types.NamespacedName) []string { return []string{fmt.Sprint("what is of ", n)} },
			}.events()
			h.Update(t.Context(), event.TypedUpdateEvent[*corev1alpha2.HealthScope]{ObjectOld: withValue(c.before), ObjectNew: withValue(c.after)}, queue)
			if queue.Len() != c.want || existed != 1 {
				t.Errorf("%d are asked for, want %d; noted %d times as existing", queue.Len(), c.want, existed)
			}
			// A new scope is read in full anyway, as are all scopes at the start.
			h.Create(t.Context(), event.TypedCreateEvent[*corev1alpha2.HealthScope]{Object: withValue(c.after)}, queue)
			if queue.Len() != c.want {
				t.Errorf("%d are asked for after the start", queue.Len())
			}
		})
	}
}
