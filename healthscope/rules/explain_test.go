package rules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// userRules are the rules of a user in tests: one result for the objects of one kind, and a record of the evaluated objects.
type userRules struct {
	apiVersion, kind string
	result           healthscope.Result
	matched          bool
	objects          []map[string]any
}

func (u *userRules) Covers(apiVersion, kind string) bool {
	return apiVersion == u.apiVersion && kind == u.kind
}

func (u *userRules) Evaluate(object map[string]any) (healthscope.Result, string, bool) {
	u.objects = append(u.objects, object)
	return u.result, "mine", u.matched
}

func TestUserRulesComeFirst(t *testing.T) {
	failed := healthscope.Result{State: healthscope.Failed, Reason: "HealthCheckFailed", Message: "no stock", Warning: true}
	cases := map[string]struct {
		object string
		want   healthscope.State
		rule   string
		asked  int
	}{
		"before the kind":              {`{apiVersion: apps/v1, kind: Deployment, status: {replicas: 1, readyReplicas: 1}}`, healthscope.Failed, "user:mine", 1},
		"before an older status":       {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`, healthscope.Failed, "user:mine", 1},
		"before what cannot be read":   {`{apiVersion: apps/v1, kind: Deployment, status: good}`, healthscope.Failed, "user:mine", 1},
		"after the deletion":           {`{apiVersion: apps/v1, kind: Deployment, metadata: {deletionTimestamp: "2026-02-01T00:00:00Z"}}`, healthscope.Terminating, "deletion", 0},
		"not for other kinds":          {`{apiVersion: v1, kind: ConfigMap}`, healthscope.Ready, "ConfigMap", 0},
		"not for other versions":       {`{apiVersion: apps/v1beta1, kind: Deployment, status: {replicas: 1, readyReplicas: 1}}`, healthscope.Ready, "Deployment", 0},
		"not for kinds of other names": {`{apiVersion: acme.example/apps/v1, kind: Deployment}`, healthscope.Ready, "none", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			user := &userRules{apiVersion: "apps/v1", kind: "Deployment", result: failed, matched: true}
			got, rule := rules.Explain(parse(t, tc.object), rules.Options{User: user})
			if got.State != tc.want || rule != tc.rule || len(user.objects) != tc.asked {
				t.Errorf("%s by %q after %d questions, want %s by %q after %d", got.State, rule, len(user.objects), tc.want, tc.rule, tc.asked)
			}
		})
	}
}

func TestUserRuleDecidesAllButIdentityAndNumbers(t *testing.T) {
	user := &userRules{apiVersion: "apps/v1", kind: "Deployment", matched: true, result: healthscope.Result{
		State: healthscope.Pending, Reason: "HealthCheckInProgress", Message: "line 1\nline 2", UID: "not this one",
	}}
	got := rules.Evaluate(parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d-1},
	  spec: {replicas: 2, paused: true}, status: {replicas: 2, readyReplicas: 2}}`), rules.Options{User: user})
	want := healthscope.Result{
		Key: healthscope.Key{Group: "apps", Kind: "Deployment", Namespace: "store", Name: "shop"}, Version: "v1", UID: "d-1",
		State: healthscope.Pending, Reason: "HealthCheckInProgress", Message: "line 1 line 2", Replicas: &healthscope.Replicas{Ready: 2, Desired: 2},
		Progress: &healthscope.Progress{Ready: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestUserRuleThatDoesNotMatchDecidesNothing(t *testing.T) {
	object := parse(t, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}, status: {replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 1}}`)
	user := &userRules{apiVersion: "apps/v1", kind: "Deployment", result: healthscope.Result{State: healthscope.Failed}}
	got, rule := rules.Explain(object, rules.Options{User: user})
	if diff := cmp.Diff(rules.Evaluate(object, rules.Options{}), got); diff != "" || rule != "Deployment" || len(user.objects) != 1 {
		t.Errorf("decided by %q after %d questions (-without +with):\n%s", rule, len(user.objects), diff)
	}
}
