package edges

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// chronicle records how the status of an object changes, and how often it is written. An API server keeps silent about a
// write that changes nothing: it shows as a request for which there is no change.
type chronicle struct {
	cp       *controlplane.ControlPlane
	resource string
	requests float64

	mu       sync.Mutex
	version  string
	statuses []string
}

// follow begins to record the only object of a list in the namespace, of a resource of a control plane, until the spec is over.
func follow(ctx context.Context, cp *controlplane.ControlPlane, c client.WithWatch, list client.ObjectList, resource string) *chronicle {
	GinkgoHelper()
	r := &chronicle{cp: cp, resource: resource}
	r.requests = r.written(ctx)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := c.Watch(watching, list, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if o, ok := e.Object.(client.Object); ok && (e.Type == watch.Added || e.Type == watch.Modified) {
				r.note(o)
			}
		}
	}()
	DeferCleanup(func() {
		w.Stop()
		stop()
		<-ended
	})
	Eventually(ctx, r.last).ShouldNot(BeEmpty())
	return r
}

func (r *chronicle) note(o client.Object) {
	var status any
	switch o := o.(type) {
	case *k8spluginv1alpha1.ResourceBundleState:
		status = o.Status
	case *corev1alpha2.HealthScope:
		status = o.Status
	}
	text, err := json.Marshal(status)
	if err != nil {
		text = []byte(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = o.GetResourceVersion()
	if len(r.statuses) == 0 || r.statuses[len(r.statuses)-1] != string(text) {
		r.statuses = append(r.statuses, string(text))
	}
}

// last is the version that was recorded last.
func (r *chronicle) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// changes is how often the status has changed since the beginning. It expects that all is recorded up to a version, and
// that each write has changed the status. While somebody writes that is not so: it is asked again, with the version of then.
func (r *chronicle) changes(ctx context.Context, g Gomega, version string) int {
	GinkgoHelper()
	written := int(r.written(ctx) - r.requests)
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Expect(r.version).To(Equal(version), "the latest version of %s", r.resource)
	g.Expect(written).To(Equal(len(r.statuses)-1), "each write of %s changes their status", r.resource)
	return written
}

// written is how many writes of the resource's status the API server has taken since it started.
func (r *chronicle) written(ctx context.Context) (n float64) {
	GinkgoHelper()
	config := r.cp.Config()
	c, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := c.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // Nothing is lost when closing what was only read.
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), "%s", text)
	Expect(string(text)).To(ContainSubstring("\napiserver_request_total{"))
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, fmt.Sprintf("resource=%q", r.resource)) ||
			!strings.Contains(line, `subresource="status"`) || !strings.Contains(line, `code="200"`) {
			continue
		}
		if strings.Contains(line, `verb="PUT"`) || strings.Contains(line, `verb="PATCH"`) || strings.Contains(line, `verb="APPLY"`) {
			count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			Expect(err).NotTo(HaveOccurred())
			n += count
		}
	}
	return n
}
