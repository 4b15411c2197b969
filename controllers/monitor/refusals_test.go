package monitor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// want makes the creator process a value in a namespace.
func (c *creations) want(namespace, value string) types.NamespacedName {
	wanted := selectorKey{namespace: namespace, key: testKey, value: value}
	c.enqueue(sets.New(wanted))
	return nameOfBundle(bundleFor(wanted))
}

// TestCreatorIsNotStarvedByRefusingNamespace has one namespace with many values whose quota is exhausted.
func TestCreatorIsNotStarvedByRefusingNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := startCreator(t, nil)
		c.refuse = func(b types.NamespacedName) error {
			if b.Namespace == "quota" {
				return errForbidden
			}
			return nil
		}
		for i := range 100 {
			c.want("quota", fmt.Sprint("app-", i))
		}
		after(time.Hour)
		for i := range 10 {
			c.want(fmt.Sprint("innocent-", i), "shop")
		}
		after(2 * time.Second)
		if _, made, logged := c.counted(); made != 10 || logged != 11 {
			t.Errorf("%d bundles of other namespaces after two seconds and %d lines in the log, want 10 and one more", made, logged)
		}
		after(23 * time.Hour)
		if asked, _, _ := c.counted(); asked > 200 {
			t.Errorf("%d creations in a day, want about one each ten minutes", asked)
		}
		c.count(func() { c.refuse = nil })
		after(12 * time.Minute)
		if _, made, _ := c.counted(); made != 110 {
			t.Errorf("%d bundles 12 minutes after the quota was raised, want all 110", made)
		}
	})
}

// TestCreatorIsNotStarvedByRefusedValue has an admission that rejects some values of a namespace.
func TestCreatorIsNotStarvedByRefusedValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := startCreator(t, nil)
		c.refuse = func(b types.NamespacedName) error {
			if b.Name != "good" {
				return errForbidden
			}
			return nil
		}
		for i := range 10 {
			c.want("ns", fmt.Sprint("bad-", i))
		}
		after(24 * time.Hour)
		good := c.want("ns", "good")
		after(12 * time.Minute)
		if !c.has(good) {
			t.Error("12 minutes after its object came a value that is not refused has no bundle")
		}
	})
}

// TestCreatorBacksOffWhenAllNamespacesRefuse has no right in any namespace.
func TestCreatorBacksOffWhenAllNamespacesRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := startCreator(t, errForbidden)
		for i := range 200 {
			c.want(fmt.Sprint("ns-", i), "shop")
			c.want(fmt.Sprint("ns-", i), "bank")
		}
		after(time.Hour)
		asked, _, logged := c.counted()
		if asked > 200*15 || logged != 200 {
			t.Errorf("%d creations in an hour and %d lines in the log, want growing pauses and one line for each namespace", asked, logged)
		}
		after(time.Hour)
		if again, _, _ := c.counted(); again-asked > 200*6 {
			t.Errorf("%d creations in the second hour, want one each ten minutes for each namespace", again-asked)
		}
		c.count(func() { c.answer = nil })
		after(12 * time.Minute)
		if _, made, _ := c.counted(); made != 400 {
			t.Errorf("%d bundles 12 minutes after the right was granted, want 400", made)
		}
	})
}

// TestCreatorWaitsForItsName has another bundle with the name, which the cache receives late.
func TestCreatorWaitsForItsName(t *testing.T) {
	t.Parallel()
	for value, within := range map[string]time.Duration{"shop": time.Second, "My_Shop": maxCreatePause + time.Second} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := startCreator(t, apierrors.NewAlreadyExists(bundleResource, value), value)
				after(10 * time.Second)
				if _, _, logged := c.counted(); logged != 0 {
					t.Errorf("%d lines in the log before the cache has the other bundle, want none", logged)
				}
				name := nameOfBundle(bundleFor(inNamespace(value)))
				c.count(func() { c.cached[name] = false })
				after(24 * time.Hour)
				asked, _, logged := c.counted()
				if asked > 10 || logged != 1 {
					t.Errorf("%d creations and %d lines in the log while another bundle has the name, want a few and one", asked, logged)
				}

				c.count(func() {
					delete(c.cached, name)
					c.answer = nil
				})
				other := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name.Name}}
				other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{testKey: "else"}}
				c.enqueue(sets.New(c.keysOf(membership{keys: []string{testKey}})(t.Context(), other)...))
				after(within)
				if !c.has(name) {
					t.Errorf("%s after the other bundle was deleted there is none for the value", within)
				}
			})
		})
	}
}

// TestChangedBundlesReleaseTheirKeys has events of a bundle that selected a value.
func TestChangedBundlesReleaseTheirKeys(t *testing.T) {
	t.Parallel()
	bundle := func(uid types.UID, generation int64) *k8spluginv1alpha1.ResourceBundleState {
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: uid, Generation: generation}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{testKey: "x"}}
		return b
	}
	before := bundle("1", 1)
	for name, tc := range map[string]struct {
		after *k8spluginv1alpha1.ResourceBundleState
		want  bool
	}{
		"another status":                        {bundle("1", 1), false},
		"another selector":                      {bundle("1", 2), true},
		"deleted and created between two lists": {bundle("2", 1), true},
	} {
		if got := released.Update(event.TypedUpdateEvent[*k8spluginv1alpha1.ResourceBundleState]{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: the keys are released: %t, want %t", name, got, tc.want)
		}
	}
	got := (&creator{key: testKey}).keysOf(membership{keys: []string{testKey}})(t.Context(), before)
	if want := []selectorKey{inNamespace("b"), inNamespace("x")}; !slices.Equal(got, want) {
		t.Errorf("released %v, want %v", got, want)
	}
}

func TestCreatorForgetsUnusedValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := startCreator(t, nil)
		var names []types.NamespacedName
		for i := range 50 {
			name := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("app-", i)}
			c.count(func() { c.cached[name] = false })
			names = append(names, c.want("ns", name.Name))
		}
		c.want("ns", "")
		after(time.Minute)
		if _, _, logged := c.counted(); logged != 51 {
			t.Errorf("%d lines in the log, want one for each of 51 values", logged)
		}
		for _, name := range names {
			c.count(func() { c.dropped.Insert(name.Name) })
			c.want("ns", name.Name)
		}
		c.count(func() { c.dropped.Insert("") })
		c.want("ns", "")
		after(time.Minute)
		if len(c.reported) != 0 {
			t.Errorf("%d values are still known that no object carries", len(c.reported))
		}
	})
}
