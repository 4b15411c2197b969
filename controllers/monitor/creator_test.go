package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"
)

func TestBundleName(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"shop":             "shop",
		"my.shop-2":        "my.shop-2",
		"171887448-sink":   "171887448-sink",
		"My_Shop":          "my-shop-0da13f5b",
		"my_shop":          "my-shop-6c8c0c21",
		"a..b":             "a--b-f62b4241",
		"_":                "d2e2adf7",
		"Shop-of-the-YEAR": "shop-of-the-year-b5d47915",
	} {
		if got := bundleName(value); got != want {
			t.Errorf("%q makes %q, want %q", value, got, want)
		}
	}
}

func TestBundleNamesAreNamesAndDiffer(t *testing.T) {
	t.Parallel()
	value := rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		for _, v := range []string{a, b} {
			if problems := validation.IsDNS1123Subdomain(bundleName(v)); len(problems) > 0 {
				t.Fatalf("%q makes %q: %v", v, bundleName(v), problems)
			}
		}
		if a != b && bundleName(a) == bundleName(b) {
			t.Fatalf("%q and %q both make %q", a, b, bundleName(a))
		}
	})
}

var bundleResource = schema.GroupResource{Group: "k8splugin.io", Resource: "resourcebundlestates"}

// creations is a client that responds to create requests as set by a test. Its cache has created bundles at once, and bundles
// that tests add.
type creations struct {
	client.Client

	*creator

	// mu guards the following fields. answer is the error of a create request, and refuse, if set, returns the error by name.
	mu     sync.Mutex
	answer error
	refuse func(types.NamespacedName) error
	asked  int
	// made and logged count the created bundles and the logged lines.
	made, logged int
	// cached has an entry for each cached bundle, which is true if the creator created the bundle.
	cached map[types.NamespacedName]bool
	// dropped are the values that no object carries any more.
	dropped sets.Set[string]
}

// count calls change with the lock of the counters.
func (c *creations) count(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// counted returns the numbers of create requests, created bundles and logged lines.
func (c *creations) counted() (asked, made, logged int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.made, c.logged
}

// has reports whether there is a bundle that the creator created.
func (c *creations) has(name types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cached[name]
}

func (c *creations) Get(_ context.Context, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.cached[name]; !ok {
		return apierrors.NewNotFound(bundleResource, name.Name)
	}
	return nil
}

func (c *creations) Create(ctx context.Context, b client.Object, _ ...client.CreateOption) error {
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("a creation has no deadline")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	name := client.ObjectKeyFromObject(b)
	if c.refuse != nil {
		if err := c.refuse(name); err != nil {
			return err
		}
	}
	if c.answer == nil {
		c.cached[name] = true
	}
	return c.answer
}

// selecting returns the cached bundles that select a key.
func (c *creations) selecting(_ context.Context, wanted selectorKey) ([]types.NamespacedName, error) {
	if name := nameOfBundle(bundleFor(wanted)); c.has(name) {
		return []types.NamespacedName{name}, nil
	}
	return nil, nil
}

// startCreator runs a creator for the given label values until the test ends.
func startCreator(t *testing.T, answer error, values ...string) *creations {
	t.Helper()
	c := &creations{answer: answer, cached: map[types.NamespacedName]bool{}, dropped: sets.New[string]()}
	logger := funcr.New(func(string, string) { c.count(func() { c.logged++ }) }, funcr.Options{})
	c.creator = newCreator(testKey, c, logger)
	c.isCarried = func(wanted selectorKey) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.dropped.Has(wanted.value)
	}
	c.created = func() { c.count(func() { c.made++ }) }
	c.bundles = c.selecting
	options := c.options()
	options.Reconciler, options.SkipNameValidation = c, new(true)
	made, err := controller.NewTypedUnmanaged(creatorName, options)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(_ context.Context, q workqueue.TypedRateLimitingInterface[selectorKey]) error {
		c.setQueue(q)
		for _, v := range values {
			c.enqueue(sets.New(inNamespace(v), selectorKey{key: testKey, value: v}, selectorKey{namespace: "ns", key: "other", value: v}))
		}
		return nil
	}
	if err := made.Watch(ctrlsource.TypedFunc[selectorKey](begin)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- made.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait() // Until the controller has started.
	return c
}

func TestCreatorLimitsCreations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var values []string
		for i := range 1000 {
			values = append(values, fmt.Sprint("app-", i))
		}
		c := startCreator(t, nil, values...)
		after(time.Second)
		if got, _, _ := c.counted(); got < 50 || got > 101 {
			t.Errorf("%d bundles in the first second, want about a hundred", got)
		}
		after(time.Minute)
		if asked, made, _ := c.counted(); made != 1000 || asked != 1000 {
			t.Errorf("%d bundles made by %d creations, want 1000 each", made, asked)
		}
	})
}

func TestCreatorHandlesCreateErrors(t *testing.T) {
	t.Parallel()
	terminating := apierrors.NewForbidden(bundleResource, "a", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	noCRD := apierrors.NewGenericServerResponse(http.StatusNotFound, "post", bundleResource, "", "404 page not found", 0, true)
	cases := map[string]struct {
		reason   string
		value    string
		err      error
		wantAsks func(int) bool
		wantLogs int
	}{
		"behind": {
			"The cache is yet to say who has the name.", "a", apierrors.NewAlreadyExists(bundleResource, "a"), func(n int) bool { return n > 10 && n < 200 }, 0,
		},
		"terminating": {"The namespace goes.", "a", terminating, func(n int) bool { return n == 1 }, 0},
		"gone":        {"The namespace is gone.", "a", apierrors.NewNotFound(corev1.Resource("namespaces"), "a"), func(n int) bool { return n == 1 }, 0},
		"no CRD":      {"The CRD may come back.", "a", noCRD, func(n int) bool { return n > 10 && n < 200 }, 1},
		"no value":    {"It is nobody's name.", "", nil, func(n int) bool { return n == 0 }, 1},
		"passing":     {"It is tried again, at growing intervals.", "a", errPassing, func(n int) bool { return n > 10 && n < 200 }, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := startCreator(t, tc.err, tc.value)
				after(24 * time.Hour)
				asked, _, logged := c.counted()
				if !tc.wantAsks(asked) {
					t.Errorf("%s %d creations in a day", tc.reason, asked)
				}
				if logged != tc.wantLogs {
					t.Errorf("%s %d lines in the log, want %d", tc.reason, logged, tc.wantLogs)
				}
			})
		})
	}
}
