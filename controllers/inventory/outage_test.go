package inventory

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// carrier carries requests to an A&AI without a network.
type carrier struct {
	http.Handler

	// down responds in place of A&AI, unless it is nil.
	down atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if down := c.down.Load(); down != nil {
		return (*down)(r)
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	c.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// TestAllTenantsAreSyncedSoonAfterOutage has an outage of A&AI of one hour.
func TestAllTenantsAreSyncedSoonAfterOutage(t *testing.T) {
	cases := map[string]func(*http.Request) (*http.Response, error){
		"nothing is behind the proxy": func(*http.Request) (*http.Response, error) {
			recorder := httptest.NewRecorder()
			recorder.WriteHeader(http.StatusServiceUnavailable)
			return recorder.Result(), nil
		},
		"requests get no answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	}
	for title, down := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outlive(t, down) })
		})
	}
}

func outlive(t *testing.T, down func(*http.Request) (*http.Response, error)) {
	const tenants, away = 8, time.Hour
	store := simulator.New(simulator.Options{})
	if err := store.Seed(simulator.CloudRegion("o", "r")); err != nil {
		t.Fatal(err)
	}
	o, registry := options(), judgedScopes{}
	o.Regions = nil
	var all []aai.Tenant
	for n := range tenants {
		id := fmt.Sprintf("t-%d", n)
		all = append(all, aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: id})
		o.Regions = append(o.Regions, configv1alpha1.Region{Cluster: "*", Namespace: id, CloudOwner: "o", CloudRegionID: "r", TenantID: id})
		registry[name(id, "s")] = judged(placed(member(id, "web", healthscope.Ready))...)
		if err := store.Seed(simulator.Tenant("o", "r", id)); err != nil {
			t.Fatal(err)
		}
	}
	i := newInputs(o, configv1alpha1.SelectScoped, registry, nil)
	for scope := range registry {
		i.scopeUpdated(scope, noon, 1)
		i.scopeJudged(scope)
	}
	aaiServer := &carrier{Handler: store}
	aaiServer.down.Store(&down)
	c, err := client.New(client.Options{BaseURL: "http://aai.example", Transport: aaiServer, Breaker: client.NewBreaker(0, nil)})
	if err != nil {
		t.Fatal(err)
	}
	syncer := sync.New(sync.Options{Client: c, Plan: plan.Options{Owner: o.Owner(), LabelPrefix: o.LabelPrefix}})
	r := newTenantReconciler(newStatus(i), oneCluster{}, syncer, func(time.Duration) {})
	var errors atomic.Int64
	logs := funcr.New(func(_, line string) {
		if strings.Contains(line, `"error"=`) {
			errors.Add(1)
		}
	}, funcr.Options{Verbosity: 1})
	stop := drive(ctrl.LoggerInto(t.Context(), logs), r, all)
	<-time.After(away)
	if n := time.Duration(errors.Load()); n > away/time.Second {
		t.Errorf("%d errors logged in %s", n, away)
	}
	aaiServer.down.Store(nil)
	<-time.After(5 * time.Second)
	stop()
	for _, tenant := range all {
		if n := len(store.List(tenant.ResourcesPath())); n != 1 {
			t.Errorf("tenant %q has %d objects 5s after A&AI is back", tenant.TenantID, n)
		}
	}
}

// drive reconciles tenants with four workers until stop is called.
func drive(ctx context.Context, r *reconciler[aai.Tenant], all []aai.Tenant) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan aai.Tenant, len(all))
	for _, tenant := range all {
		queue <- tenant
	}
	for range 4 {
		go func() {
			for {
				select {
				case tenant := <-queue:
					result, _ := r.Reconcile(ctx, tenant)
					time.AfterFunc(result.RequeueAfter, func() { queue <- tenant })
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return cancel
}
