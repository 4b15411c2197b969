package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// The group and the cluster of the tests.
const (
	autumn    = "retail/shop/v2/autumn"
	autumnID  = "5127746093381250097"
	bonn      = "west+bonn"
	autumnURL = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/autumn/status"
)

// statusHub is a status REST server like that of a hub, with scopes and clusters that a test can change.
type statusHub struct {
	*httptest.Server

	mu sync.Mutex
	// scopes are the existing scopes. state is the state of the Deployment in bonn.
	scopes []corev1alpha2.HealthScope
	state  healthscope.State
	// silent is the time since the last response of etcd.
	silent   time.Duration
	changed  map[int]func(namespace, name string)
	requests []*http.Request
	// tokens are the valid tokens. If there are none, requests need no token.
	tokens []string
}

func newStatusHub(t *testing.T) *statusHub {
	t.Helper()
	h := &statusHub{state: healthscope.Ready, changed: map[int]func(string, string){}, scopes: []corev1alpha2.HealthScope{scopeIn("default", "vfw", false), scopeIn("shop", "web", true)}}
	documents := api.NewDocuments(api.DocumentsOptions{Contexts: h, Clusters: h, Policy: healthscope.DefaultPolicy()})
	open := api.NewHandler(api.Options{Scopes: h, Documents: documents})
	guarded := api.NewHandler(api.Options{Scopes: h, Documents: documents, Guard: h})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r)
		handler := open
		if len(h.tokens) > 0 {
			handler = guarded
		}
		h.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

// asked returns the paths and queries of the requests.
func (h *statusHub) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, r := range h.requests {
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		all = append(all, strings.TrimSuffix(r.URL.Path+"?"+query, "?"))
	}
	return all
}

// set calls change, and notifies subscribers of a change of a scope.
func (h *statusHub) set(namespace, name string, change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	for _, changed := range h.changed {
		changed(namespace, name)
	}
}

// Get implements api.Scopes.
func (h *statusHub) Get(_ context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.scopes {
		if h.scopes[i].Namespace == namespace && h.scopes[i].Name == name {
			return h.scopes[i].DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "healthscopes"}, name)
}

// List implements api.Scopes.
func (h *statusHub) List(_ context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.scopes), func(s corev1alpha2.HealthScope) bool { return namespace != "" && s.Namespace != namespace }), nil
}

// Subscribe implements api.Scopes.
func (h *statusHub) Subscribe(changed func(namespace, name string)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := len(h.changed)
	h.changed[id] = changed
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.changed, id)
	}
}

// Authenticate implements api.Guard.
func (h *statusHub) Authenticate(_ *http.Request, token string) (api.Caller, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return api.Caller{Name: token}, slices.Contains(h.tokens, token), nil
}

// Authorize implements api.Guard.
func (*statusHub) Authorize(_ context.Context, c api.Caller, _ api.Access) (bool, error) {
	return c.Name != "stranger", nil
}

// View implements api.Contexts: a group in two clusters, one of which is unreachable, and the network intents of one.
func (h *statusHub) View(_ context.Context, s appcontext.DeploymentRef, instance string) (appcontext.View, error) {
	switch {
	case s != appcontext.GroupRef("retail", "shop", "v2", "autumn") && s != appcontext.ClusterRef("west", "bonn"):
		return appcontext.View{}, nil
	case instance != "" && instance != autumnID:
		return appcontext.View{}, appcontext.ErrNotFound
	}
	values := map[string][]byte{}
	put := func(key string, value any) {
		data, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		values["/context/"+autumnID+"/"+key] = data
	}
	put("", autumnID)
	put("status/", map[string]string{"Status": "Instantiated"})
	put("app/web/", "web")
	for _, cluster := range []string{"west+berlin", bonn} {
		at := "app/web/cluster/" + cluster + "/"
		put(at, cluster)
		put(at+"resource/web+Deployment/", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: store}\n")
		put(at+"resource/web+Deployment/status/", map[string]string{"Status": "Applied"})
	}
	context, err := appcontext.NewSnapshot(7, values)
	if err != nil {
		return appcontext.View{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return appcontext.View{Revision: 7, AsOf: time.Now().Add(-h.silent), Contexts: []string{autumnID}, ContextID: autumnID, Context: context, StatusContext: context}, nil
}

// Bundle implements api.Clusters.
func (h *statusHub) Bundle(cluster, _, _ string) (api.Observation, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cluster != bonn {
		return api.Observation{Report: status.Report{Unreachable: true, Reason: healthscope.ReasonClusterUnreachable, Message: "no answer"}}, false
	}
	r := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: "apps", Kind: "Deployment", Namespace: "store", Name: "web"},
		Version: "v1", State: h.state, Since: time.Now().Add(-time.Hour - 30*time.Second),
	}
	if h.state == healthscope.Failed {
		r.Reason, r.Message = "CrashLoopBackOff", "it crashes\x1b[2J"
	}
	return api.Observation{Report: status.Report{Members: healthscope.Judge([]healthscope.Result{r}, healthscope.Policy{}, time.Now()).Members, Observed: true}}, true
}

// Instance implements api.Clusters.
func (*statusHub) Instance(string) (found []api.Observation, unreadable []string) { return nil, nil }

// scopeIn returns a scope with one app in two clusters.
func scopeIn(namespace, name string, healthy bool) corev1alpha2.HealthScope {
	s := corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	s.Status = corev1alpha2.HealthScopeStatus{
		Health: corev1alpha2.Healthy, ResourcesReady: "2/2", ClustersReachable: "2/2", ObservedGeneration: 1,
		Summary:    corev1alpha2.MemberCounts{State: "Ready", Total: 2, Ready: 2},
		Conditions: []metav1.Condition{{Type: corev1alpha2.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", Message: "all is well"}},
		Apps: []corev1alpha2.AppStatus{{Name: "sink", State: "Ready", Total: 2, Ready: 2, Clusters: []corev1alpha2.ClusterStatus{
			{Name: bonn, State: "Ready", Total: 2, Ready: 2},
		}}},
	}
	if healthy {
		return s
	}
	seen := metav1.NewTime(time.Now().Add(-2*time.Hour - 30*time.Second))
	s.Status.Health, s.Status.Summary, s.Status.ResourcesReady, s.Status.ClustersReachable = corev1alpha2.Unhealthy, corev1alpha2.MemberCounts{State: "Failed", Total: 2, Ready: 1, Failed: 1}, "1/2", "1/2"
	s.Status.Conditions[0].Reason, s.Status.Conditions[0].Message = "MembersFailed", "1 of 2 resources are not healthy"
	s.Status.Apps[0].Clusters = append(s.Status.Apps[0].Clusters, corev1alpha2.ClusterStatus{Name: "west+berlin", State: "Unknown", LastSeen: &seen})
	s.Status.Culprits = []corev1alpha2.Culprit{{
		Cluster: bonn, App: "sink", Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "fw0", State: "Failed", Reason: "CrashLoopBackOff", Cause: "Pod fw0-0: exit code 1", Since: &seen,
	}}
	s.Status.FirstCulprit = "Deployment/fw0 in west+bonn: CrashLoopBackOff"
	return s
}

// runStatus runs the command against a server, and returns its exit code and its output.
func runStatus(t *testing.T, server string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(append([]string{"status", "--server", server}, args...), nil, &o, &e)
	return code, o.String(), e.String()
}
