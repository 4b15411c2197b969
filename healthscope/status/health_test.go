package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestHealthOfResources covers the states of a resource for each rsync status and presence.
func TestHealthOfResources(t *testing.T) {
	ready := deployment(healthscope.Ready)
	crashed := healthscope.Judge([]healthscope.Result{
		{Key: ready.Key, Version: "v1", State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "0/1 ready", Since: noon.Add(-time.Minute)},
		{
			Key: healthscope.Key{Cluster: "west+berlin", Kind: "Pod", Namespace: "store", Name: "web-0"}, State: healthscope.Failed, Reason: "CrashLoopBackOff", Message: "exit code 1",
			Since: noon.Add(-time.Minute), Owner: &healthscope.Owner{Group: "apps", Kind: "Deployment", Name: "web"},
		},
	}, healthscope.DefaultPolicy(), noon).Members
	cut := seen()
	cut.Truncated, cut.Unlisted = true, healthscope.Summary{Total: 3, Ready: 3, Healthy: 3}
	tests := map[string]struct {
		rsync  string
		begun  int
		kind   string
		report status.Report
		want   status.Health
		total  int
	}{
		"ready":         {"Applied", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Ready", Since: since(time.Hour), Age: new(int64(3600)), CountsAs: "Ready"}, 1},
		"crashed":       {"Applied", 7200, "apps/v1 Deployment", seen(crashed...), status.Health{State: "Failed", Reason: "CrashLoopBackOff", Message: "exit code 1", Cause: "Pod web-0: CrashLoopBackOff: exit code 1", Since: since(time.Minute), Age: new(int64(60)), CountsAs: "Failed"}, 1},
		"refused":       {"Failed", 7200, "apps/v1 Deployment", seen(), status.Health{State: "Failed", Reason: "RsyncFailed", Message: "rsync could not apply it", CountsAs: "Failed"}, 1},
		"refused, old":  {"Failed", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Failed", Reason: "RsyncFailed", Message: "rsync could not apply it; what is there is Ready", CountsAs: "Failed"}, 1},
		"not yet":       {"Pending", 30, "apps/v1 Deployment", seen(), status.Health{State: "Pending", Reason: "RsyncPending", Message: "rsync has not applied it yet", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"retrying":      {"Retrying", 30, "apps/v1 Deployment", status.Report{}, status.Health{State: "Pending", Reason: "RsyncRetrying", Message: "rsync tries to apply it", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"just missing":  {"Applied", 30, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "NotFound", Message: "rsync has applied it, and it is not there", Since: since(30 * time.Second), Age: new(int64(30)), CountsAs: "Pending"}, 1},
		"missing":       {"Applied", 61, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "NotFound", Message: "rsync has applied it, and it is not there", CountsAs: "Failed"}, 1},
		"unseen":        {"Applied", 7200, "apps/v1 Deployment", status.Report{}, status.Health{State: "Unknown", Reason: "NotObserved", Message: "no monitor has reported on the app in this cluster", CountsAs: "Unknown"}, 1},
		"lost, missing": {"Applied", 7200, "apps/v1 Deployment", lost(), status.Health{State: "Unknown", Reason: "ClusterUnreachable", Message: "no answer", CountsAs: "Unknown"}, 1},
		"lost":          {"Applied", 7200, "apps/v1 Deployment", lost(ready), status.Health{State: "Unknown", Reason: "ClusterUnreachable", Message: "no answer; last seen Ready", LastState: "Ready", Since: since(time.Minute), Age: new(int64(60)), CountsAs: "Unknown"}, 1},
		"not followed":  {"Applied", 7200, "acme.example/v1 Gadget", seen(), status.Health{State: "Unknown", Reason: "NotFollowed", Message: "the monitor does not report this kind"}, 0},
		"not listed":    {"Applied", 7200, "apps/v1 Deployment", cut, status.Health{State: "Unknown", Reason: "NotListed", Message: "the bundle is too large to name it"}, 3},
		"deleted":       {"Deleted", 7200, "apps/v1 Deployment", seen(), status.Health{State: "NotPresent", Reason: "Terminated"}, 0},
		"deleted, here": {"Deleted", 7200, "apps/v1 Deployment", seen(ready), status.Health{State: "Terminating", Reason: "StillPresent", Message: "rsync has deleted it, and it is still there; it is Ready"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tt.kind, " ")
			in := edge("Instantiated", "web+"+kind, object(apiVersion, kind, "web"), tt.rsync).input(t, action(appcontext.ActionInstantiated, "42", tt.begun))
			in.Reports[berlin] = tt.report
			d := status.New(in, query(t, "health=true"))
			check(t, "health", &tt.want, d.Apps[0].Clusters[0].Resources[0].Health)
			check(t, "resources that count", tt.total, d.Health.Resources.Total)
		})
	}
}

// TestATerminatedInstanceIsNeverShownAsRunning checks that a document ignores the saved bundles of a terminated instance, and that
// it shows an object that still exists as such.
func TestATerminatedInstanceIsNeverShownAsRunning(t *testing.T) {
	ready := deployment(healthscope.Ready)
	ended := []appcontext.Action{action(appcontext.ActionInstantiated, "42", 7200), action(appcontext.ActionTerminated, "42", 60)}
	tests := map[string]struct {
		state, resource string
		report          status.Report
		want            string
		counts          map[string]int
		overall, reason string
	}{
		"saved bundle":            {"Terminated", "Deleted", savedWeb(time.Time{}), "Deleted|Unknown|NotPresent|Terminated|", map[string]int{"Unknown": 1}, "NotPresent", "Terminated"},
		"states left behind":      {"Terminated", "Applied", savedWeb(time.Time{}), "Deleted|Unknown|NotPresent|Terminated|", map[string]int{"Unknown": 1}, "NotPresent", "Terminated"},
		"empty bundle":            {"Terminated", "Deleted", seen(), "Deleted|NotPresent|NotPresent|Terminated|", map[string]int{"NotPresent": 1}, "NotPresent", "Terminated"},
		"still there":             {"Terminated", "Deleted", seen(ready), "Deleted|Present|Terminating|StillPresent|", map[string]int{"Present": 1}, "Terminating", "StillPresent"},
		"lost":                    {"Terminated", "Deleted", lost(ready), "Deleted|Unknown|Unknown|ClusterUnreachable|", map[string]int{"Unknown": 1}, "Unknown", "ClusterUnreachable"},
		"terminating, unseen":     {"Terminating", "Applied", status.Report{}, "Applied|Unknown|Unknown|NotObserved|", map[string]int{"Unknown": 1}, "Terminating", "Deleting"},
		"terminating":             {"Terminating", "Applied", seen(ready), "Applied|Present|Terminating|Deleting|", map[string]int{"Present": 1}, "Terminating", "Deleting"},
		"asked for":               {"Instantiated", "Applied", seen(ready), "Applied|Present|Terminating|Deleting|", map[string]int{"Present": 1}, "Terminating", "Deleting"},
		"could not be terminated": {"TerminateFailed", "Failed", seen(ready), "Failed|Present|Failed|RsyncFailed|", map[string]int{"Present": 1}, "Failed", "RsyncFailed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := web(tt.state, tt.resource).input(t, ended...)
			in.Reports[berlin] = tt.report
			d := status.New(in, query(t, "output=small"))
			check(t, "resource", []string{"web/berlin/Deployment/web: " + tt.want}, words(d))
			check(t, "counts", tt.counts, d.ClusterStatus)
			check(t, "status", tt.state, d.Status)
			for _, h := range []*status.Health{d.Health, d.Apps[0].Health, d.Apps[0].Clusters[0].Health} {
				if h.State != tt.overall || h.Reason != tt.reason || h.Resources.Total != 0 {
					t.Errorf("health %+v %+v", h, h.Resources)
				}
			}
		})
	}
}

// TestTheStateOfTheContextCounts checks that a context that ends or has failed is not Ready, even without a history, which EMCO keeps
// elsewhere, and even when every resource is Ready. A failed state says nothing of what a filter selects.
func TestTheStateOfTheContextCounts(t *testing.T) {
	ready := &status.Health{State: "Ready", Since: since(time.Hour), Age: new(int64(3600)), Resources: &status.Counts{Total: 1, Ready: 1}}
	failed := func(state string) *status.Health {
		return &status.Health{State: "Failed", Reason: "RsyncFailed", Message: "the state of the context is " + state, Resources: ready.Resources}
	}
	ending := &status.Health{State: "Terminating", Reason: "Deleting", Message: "not everything has been deleted yet", Resources: &status.Counts{}}
	ended := &status.Health{State: "Terminating", Reason: "StillPresent", Message: "rsync has deleted everything, and something is still there", Resources: &status.Counts{}}
	for state, want := range map[string]struct{ all, app *status.Health }{
		"Instantiated": {ready, ready}, "Updating": {ready, ready}, "InstantiateFailed": {failed("InstantiateFailed"), ready}, "UpdatedFailed": {failed("UpdatedFailed"), ready},
		"Terminating": {ending, ending}, "TerminateFailed": {ending, ending}, "Terminated": {ended, ended},
	} {
		in := web(state, "Applied").input(t)
		in.Reports[berlin] = seen(deployment(healthscope.Ready))
		for _, actions := range [][]appcontext.Action{nil, {action(appcontext.ActionTerminated, "41", 60)}} { // Another context has been terminated.
			in.Info.Actions = actions
			check(t, state, want.all, status.New(in, query(t, "output=small")).Health)
			check(t, state+", its app", want.app, status.New(in, query(t, "output=small&app=web")).Health)
		}
	}
}
