package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
