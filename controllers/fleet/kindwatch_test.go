package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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
		"Timeout":      {"the API server is slow", apierrors.NewTimeoutError("slow", 1), ""},
		"Unreachable":  {"the API server is away", fmt.Errorf("cannot dial: %w", http.ErrServerClosed), ""},
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
	told := 0
	o := &Objects{kinds: map[schema.GroupVersionKind]*kindWatch{}}
	w := &kindWatch{objects: o, gvk: gvk, started: time.Now().Add(-time.Hour), notify: func(schema.GroupVersionKind, types.NamespacedName) { told++ }}
	o.kinds[gvk] = w
	forbidden := func() { w.fail(&problem{reason: healthscope.ReasonForbidden, message: "no"}) }
	refusedForLong := func() {
		w.refused = w.refused.Add(-doubtTime)
		forbidden()
	}
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
		{"a watch begins: what was read before holds again", w.clear, healthscope.ReasonNotFound, 4},
		{"another watch begins", w.clear, healthscope.ReasonNotFound, 4},
	}
	for _, s := range steps {
		s.do()
		got := o.Get(gvk, name)
		if got.Result.Reason != s.want || got.Settling || told != s.told {
			t.Errorf("%s: want %s after %d words, got %s (settling %t) after %d", s.reason, s.want, s.told, got.Result.Reason, got.Settling, told)
		}
	}
}
