package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/dynamicclient"
	"github.com/healthscope/healthscope/healthscope"
)

func TestReadProblem(t *testing.T) {
	t.Parallel()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		reason string
		err    error
		want   healthscope.Reason
	}{
		"Forbidden":    {"the user has to grant a right", apierrors.NewForbidden(resource, "", errors.New("no")), healthscope.ReasonForbidden},
		"NotFound":     {"the CRD has gone", apierrors.NewNotFound(resource, ""), healthscope.ReasonKindNotFound},
		"NotWatchable": {"some aggregated APIs cannot be watched", apierrors.NewMethodNotSupported(resource, "list"), healthscope.ReasonKindNotFound},
		"Expired":      {"the watch starts again by itself", apierrors.NewResourceExpired("too old"), ""},
		"Timeout":      {"the API server is slow", apierrors.NewTimeoutError("slow", 1), healthscope.ReasonNotSynced},
		"Unreachable":  {"the API server is away", fmt.Errorf("cannot dial: %w", http.ErrServerClosed), healthscope.ReasonNotSynced},
		"Unavailable":  {"the API behind it is away", apierrors.NewServiceUnavailable("no endpoints"), healthscope.ReasonNotSynced},
		"Broken":       {"a conversion webhook fails", apierrors.NewInternalError(errors.New(strings.Repeat("conversion webhook ", 100))), healthscope.ReasonNotSynced},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got healthscope.Reason
			if p := readProblem(gvk, fmt.Errorf("failed to list: %w", c.err)); p != nil {
				got = p.reason
				if !strings.Contains(p.message, "apps/v1 Deployment") {
					t.Errorf("message %q does not name the kind", p.message)
				}
				if len(p.message) > 256 {
					t.Errorf("message has %d bytes", len(p.message))
				}
			}
			if got != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got)
			}
		})
	}
}

func TestAProblemIsBelievedAndTakenBackWhenThereIsReason(t *testing.T) {
	t.Parallel()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	o, w, told := oneKind(gvk)
	w.started = time.Now().Add(-time.Hour)
	forbidden := func() { w.fail(&problem{reason: healthscope.ReasonForbidden, message: "no"}) }
	refusedForLong := func() {
		w.refused = w.refused.Add(-doubtTime)
		forbidden()
	}
	outage := func() { w.fail(&problem{reason: healthscope.ReasonNotSynced, message: "connection refused"}) }
	steps := []struct {
		reason string
		do     func()
		want   healthscope.Reason
		told   int
	}{
		{"nothing has been read for an hour", func() {}, healthscope.ReasonNotSynced, 0},
		{"a right is missing", forbidden, healthscope.ReasonForbidden, 1},
		{"and again", forbidden, healthscope.ReasonForbidden, 1},
		{"a watch begins, from which nothing has come yet", w.clear, healthscope.ReasonForbidden, 1},
		{"all has been read", w.settle, healthscope.ReasonNotFound, 2},
		{"the API server starts, and knows no rights yet", forbidden, healthscope.ReasonNotFound, 2},
		{"and now it does", w.clear, healthscope.ReasonNotFound, 2},
		{"the right is lost", forbidden, healthscope.ReasonNotFound, 2},
		{"and stays so", refusedForLong, healthscope.ReasonForbidden, 3},
		{"for a day", func() { w.failing = w.failing.Add(-24 * time.Hour) }, healthscope.ReasonForbidden, 3},
		{"the API server is restarted", outage, healthscope.ReasonForbidden, 3},
		{"and refuses again", forbidden, healthscope.ReasonForbidden, 3},
		{"a watch begins: what was read before holds again", w.clear, healthscope.ReasonNotFound, 4},
		{"another watch begins", w.clear, healthscope.ReasonNotFound, 4},
		{"the right is lost for long", func() { forbidden(); refusedForLong() }, healthscope.ReasonForbidden, 5},
		{"the API server goes away", outage, healthscope.ReasonForbidden, 5},
		{"and does not come back", func() { w.silent = w.silent.Add(-outageTime); outage() }, healthscope.ReasonNotSynced, 6},
	}
	for _, s := range steps {
		s.do()
		got := o.Get("local", gvk, name)
		if got.Result.Reason != s.want || got.Settling || *told != s.told {
			t.Errorf("%s: want %s after %d words, got %s (settling %t) after %d", s.reason, s.want, s.told, got.Result.Reason, got.Settling, *told)
		}
	}
}

// oneKind returns an Objects and its watch of one kind, which counts what it tells.
func oneKind(gvk schema.GroupVersionKind) (o *Objects, w *kindWatch, told *int) {
	told = new(int)
	o = NewObjects(nil, nil)
	o.setState(ClusterState{Name: "local", Reachability: Connected})
	at := place{Kind: Kind{"local", gvk}}
	w = &kindWatch{
		place: at, objects: o, started: time.Now(), results: map[types.NamespacedName]healthscope.Result{}, cancel: func() {},
		notify: func(Kind, types.NamespacedName) { *told++ },
	}
	o.kinds[at] = w
	return o, w, told
}

func TestAKindThatCannotBeReadAnyMoreDoesNotStayAsItWas(t *testing.T) {
	t.Parallel()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	fail := func(err error) func(*kindWatch) { return func(w *kindWatch) { w.failed(t.Context(), err) } }
	down := fail(apierrors.NewServiceUnavailable("conversion webhook: no endpoints"))
	downElse := fail(fmt.Errorf("read tcp 127.0.0.1:4711: connection reset"))
	forbidden := fail(apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("no")))
	expired := fail(apierrors.NewResourceExpired("too old"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	later := func(d time.Duration) func(*kindWatch) {
		return func(w *kindWatch) {
			for _, at := range []*time.Time{&w.failing, &w.refused} {
				if !at.IsZero() {
					*at = at.Add(-d)
				}
			}
		}
	}
	back, settle := (*kindWatch).clear, (*kindWatch).settle
	stopped := func(w *kindWatch) { w.failed(ended, context.Canceled) }
	cases := map[string]struct {
		do       []func(*kindWatch)
		want     healthscope.Reason
		settling bool
		told     int
	}{
		"young":                           {do: []func(*kindWatch){settle, down, later(50 * time.Second), downElse}, want: healthscope.ReasonNotFound, told: 1},
		"old":                             {do: []func(*kindWatch){settle, down, later(61 * time.Second), downElse}, want: healthscope.ReasonNotSynced, told: 2},
		"it is told of once":              {do: []func(*kindWatch){settle, down, later(61 * time.Second), down, downElse, down}, want: healthscope.ReasonNotSynced, told: 2},
		"it is back":                      {do: []func(*kindWatch){settle, down, later(61 * time.Second), down, back}, want: healthscope.ReasonNotFound, told: 3},
		"it was back in between":          {do: []func(*kindWatch){settle, down, later(61 * time.Second), back, down}, want: healthscope.ReasonNotFound, told: 1},
		"watches that end":                {do: []func(*kindWatch){settle, expired, later(61 * time.Second), expired}, want: healthscope.ReasonNotFound, told: 1},
		"never read, young":               {do: []func(*kindWatch){down, later(50 * time.Second), down}, want: healthscope.ReasonNotSynced, settling: true},
		"never read, old":                 {do: []func(*kindWatch){down, later(61 * time.Second), down}, want: healthscope.ReasonNotSynced, told: 1},
		"read at last":                    {do: []func(*kindWatch){down, later(61 * time.Second), down, settle, down}, want: healthscope.ReasonNotFound, told: 2},
		"restarts without knowing rights": {do: []func(*kindWatch){settle, forbidden, down, later(20 * time.Second), forbidden}, want: healthscope.ReasonNotFound, told: 1},
		"nobody wants it":                 {do: []func(*kindWatch){settle, stopped, later(61 * time.Second), stopped}, want: healthscope.ReasonNotFound, told: 1},
	}
	for name0, c := range cases {
		t.Run(name0, func(t *testing.T) {
			t.Parallel()
			o, w, told := oneKind(gvk)
			for _, do := range c.do {
				do(w)
			}
			got := o.Get("local", gvk, name)
			if got.Result.Reason != c.want || got.Settling != c.settling || *told != c.told {
				t.Errorf("want %s (settling %t) after %d words, got %s (%t) after %d", c.want, c.settling, c.told, got.Result.Reason, got.Settling, *told)
			}
		})
	}
}

// The requests themselves must tell: the reflector tries watches again in silence.
func TestEveryFailedRequestIsNoted(t *testing.T) {
	t.Parallel()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no endpoints for the conversion webhook", http.StatusServiceUnavailable)
	}))
	t.Cleanup(broken.Close)
	client, err := dynamicclient.New(&rest.Config{Host: broken.URL}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"list", "watch"} {
		_, w, _ := oneKind(schema.GroupVersionKind{Group: "acme.example.com", Version: "v1", Kind: "Widget"})
		w.client = client
		w.settle()
		lw := w.listWatch(schema.GroupVersionResource{Group: "acme.example.com", Version: "v1", Resource: "widgets"})
		request := func() error {
			if verb == "list" {
				_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
				return err
			}
			_, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			return err
		}
		if request() == nil || w.problem != nil || w.failing.IsZero() {
			t.Errorf("%s: want a young failure, got %v since %s", verb, w.problem, w.failing)
		}
		w.failing = w.failing.Add(-outageTime)
		if request() == nil || w.problem == nil || w.problem.reason != healthscope.ReasonNotSynced {
			t.Errorf("%s: want a problem, got %v", verb, w.problem)
		}
	}
}

// reader is a rule that says what it can read in an object.
type reader struct{}

func (reader) Covers(string, string) bool { return true }

func (reader) Evaluate(object map[string]any) (healthscope.Result, string, bool) {
	return healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonHealthCheckFailed, Message: fmt.Sprint(object)}, "reader", true
}

func TestRulesDoNotSeeWhatMayBeSecret(t *testing.T) {
	t.Parallel()
	_, w, _ := oneKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	w.objects.user = reader{}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "env": []any{map[string]any{"name": "PASSWORD", "value": "open-sesame"}}}}},
	}}
	kept, err := w.judge(pod)
	j, ok := kept.(*judged)
	if err != nil || !ok {
		t.Fatalf("got %T, %v", kept, err)
	}
	if text := j.result.Message; strings.Contains(text, "open-sesame") || !strings.Contains(text, "PASSWORD") {
		t.Errorf("the rule saw %s", text)
	}
}
