package e2e

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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// chronicle records how the statuses of a resource's objects change in a cluster, and how often they are written. A watch does
// not show a write that changes nothing: such a write is a request without a change.
type chronicle struct {
	cp       *controlplane.ControlPlane
	resource string
	requests float64
	// current lists the current objects.
	current func() (map[string]client.Object, error)

	mu       sync.Mutex
	versions map[string]string // By namespace and name.
	statuses map[string]string
	changed  int
}

// follow records all objects of a resource in a control plane until the spec ends. list is an empty list of the resource's kind.
func follow(ctx context.Context, cp *controlplane.ControlPlane, c client.WithWatch, list client.ObjectList, resource string) *chronicle {
	GinkgoHelper()
	r := &chronicle{cp: cp, resource: resource, versions: map[string]string{}, statuses: map[string]string{}}
	r.current = func() (map[string]client.Object, error) {
		all := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // A copy of a list is one.
		if err := c.List(ctx, all); err != nil {
			return nil, err
		}
		objects := map[string]client.Object{}
		return objects, meta.EachListItem(all, func(o runtime.Object) error {
			object := o.(client.Object) //nolint:forcetypeassert // Items of lists of objects are objects.
			objects[client.ObjectKeyFromObject(object).String()] = object
			return nil
		})
	}
	before, err := r.current()
	Expect(err).NotTo(HaveOccurred())
	for _, o := range before {
		r.note(o)
	}
	r.requests, r.changed = r.written(ctx), 0
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w, err := c.Watch(watching, list)
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
	key := client.ObjectKeyFromObject(o).String()
	r.versions[key] = o.GetResourceVersion()
	if r.statuses[key] != string(text) {
		r.statuses[key] = string(text)
		r.changed++
	}
}

// changes returns how often statuses have changed since follow. It expects that all changes are recorded, and that each write
// has changed a status. This does not hold while a client writes, so callers retry.
func (r *chronicle) changes(ctx context.Context, g Gomega) int {
	GinkgoHelper()
	now, err := r.current()
	g.Expect(err).NotTo(HaveOccurred())
	versions := map[string]string{}
	for key, o := range now {
		versions[key] = o.GetResourceVersion()
	}
	written := int(r.written(ctx) - r.requests)
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Expect(r.versions).To(Equal(versions), "the latest versions of %s", r.resource)
	g.Expect(written).To(Equal(r.changed), "each write of %s changes their status", r.resource)
	return written
}

// written returns how many writes of the resource's status the API server has accepted since it started.
func (r *chronicle) written(ctx context.Context) (n float64) {
	GinkgoHelper()
	config := r.cp.Config()
	c, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := c.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // The response was only read, so an error of Close loses nothing.
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
