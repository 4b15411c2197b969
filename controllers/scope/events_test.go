package scope

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func TestEventsOnChangesOfHealth(t *testing.T) {
	t.Parallel()
	healthy, unhealthy, unknown := corev1alpha2.Healthy, corev1alpha2.Unhealthy, corev1alpha2.UnknownHealth
	type step struct {
		at     time.Duration
		health corev1alpha2.Health
		// maintenance is true while the scope is under maintenance.
		maintenance bool
		// restart is true when the controller was restarted before the step.
		restart bool
		event   string
		wait    time.Duration
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"it comes up":                     {steps: []step{{at: 0, health: unhealthy, wait: time.Minute}, {at: 20 * time.Second, health: unknown, wait: 40 * time.Second}, {at: 40 * time.Second, health: healthy, event: "Normal Healthy"}, {at: time.Hour, health: healthy}}},
		"it does not come up":             {steps: []step{{at: 0, health: unhealthy, wait: time.Minute}, {at: time.Minute, health: unhealthy, event: "Warning Unhealthy"}, {at: time.Hour, health: unhealthy}}},
		"it cannot be known":              {steps: []step{{at: 0, health: unknown, wait: time.Minute}, {at: time.Minute, health: unknown, event: "Warning HealthUnknown"}}},
		"it is well, and at once no more": {reason: "it was known to be well", steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: time.Second, health: unhealthy, event: "Warning Unhealthy"}, {at: 2 * time.Second, health: healthy, event: "Normal Healthy"}}},
		"it waits for its resources":      {steps: []step{{at: 0, health: unknown, wait: time.Minute}, {at: time.Second, health: unhealthy, wait: 59 * time.Second}, {at: 30 * time.Second, health: healthy, event: "Normal Healthy"}}},
		"a restart while it comes up":     {steps: []step{{at: 0, health: unhealthy, wait: time.Minute}, {at: 30 * time.Second, restart: true, health: unhealthy, wait: 30 * time.Second}, {at: time.Minute, health: unhealthy, event: "Warning Unhealthy"}}},
		"a restart after it was recorded": {steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: 10 * time.Second, restart: true, health: healthy}, {at: 20 * time.Second, health: unhealthy, event: "Warning Unhealthy"}}},
		"a restart of an old one":         {steps: []step{{at: 0, health: unhealthy, wait: time.Minute}, {at: time.Hour, restart: true, health: unhealthy}, {at: 2 * time.Hour, health: healthy, event: "Normal Healthy"}}},
		"first seen when it is old":       {steps: []step{{at: time.Hour, health: unhealthy, event: "Warning Unhealthy"}}},
		"it fails under maintenance":      {steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: time.Second, health: unhealthy, maintenance: true}, {at: time.Minute, health: healthy, maintenance: true}, {at: time.Hour, health: healthy}}},
		"it fails longer than that":       {steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: time.Second, health: unhealthy, maintenance: true}, {at: time.Hour, health: unhealthy, event: "Warning Unhealthy"}}},
		"a restart under maintenance":     {reason: "the status does not say what was recorded", steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: time.Second, health: unhealthy, maintenance: true}, {at: 30 * time.Minute, restart: true, health: unhealthy, maintenance: true}, {at: time.Hour, health: unhealthy, event: "Warning Unhealthy"}, {at: 2 * time.Hour, health: unhealthy}}},
		"one that is alarming at first":   {reason: "another cluster was away for a moment", steps: []step{{at: 0, health: healthy, event: "Normal Healthy"}, {at: time.Second, health: unhealthy, maintenance: true}, {at: 30 * time.Minute, restart: true, health: unhealthy}, {at: 31 * time.Minute, health: unhealthy, maintenance: true}, {at: time.Hour, health: unhealthy, event: "Warning Unhealthy"}}},
		"it heals after such a restart":   {steps: []step{{at: time.Hour, health: unhealthy, maintenance: true}, {at: 2 * time.Hour, restart: true, health: unhealthy, maintenance: true}, {at: 3 * time.Hour, health: healthy, maintenance: true, event: "Normal Healthy"}}},
		"it heals under maintenance":      {steps: []step{{at: time.Hour, health: unhealthy, event: "Warning Unhealthy"}, {at: 2 * time.Hour, health: healthy, maintenance: true, event: "Normal Healthy"}}},
		"a clock that is an hour behind":  {steps: []step{{at: -time.Hour, health: unhealthy, wait: time.Minute}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(10)
			r := &reconciler{recorder: recorder}
			s := scopeOf(corev1alpha2.HealthScopeSpec{})
			s.CreationTimestamp = metav1.NewTime(noon)
			e := NewRegistry().entryFor(s, noon)
			for i, step := range tc.steps {
				now := noon.Add(step.at)
				if step.restart {
					e = NewRegistry().entryFor(s, now)
				}
				s.Status.Health = step.health
				if wait := r.recordHealth(t.Context(), e, s, step.maintenance, now); wait != step.wait {
					t.Errorf("step %d: asks again after %s, want %s", i, wait, step.wait)
				}
				got := ""
				select {
				case event := <-recorder.Events:
					got = event[:len(event)-1] // The note is empty here.
				default:
				}
				if got != step.event {
					t.Errorf("step %d: the event is %q, want %q: %s", i, got, step.event, tc.reason)
				}
			}
		})
	}
}

func TestClusterMaintenanceMutesItsUnhealthyContributors(t *testing.T) {
	t.Parallel()
	state := func(cluster string) (fleet.ClusterState, bool) {
		return fleet.ClusterState{Maintenance: map[string]string{edge1: "new switches"}[cluster]}, cluster != "acme+moon"
	}
	unhealthyMember := func(cluster string) healthscope.Member {
		return member(cluster, "Deployment", "web", healthscope.Failed, "CrashLoopBackOff")
	}
	unlisted := func(cluster string, healthy int) Unlisted {
		return Unlisted{Cluster: cluster, Summary: healthscope.Summary{Total: 9, Healthy: healthy}}
	}
	well := member(edge2, "Deployment", "api", healthscope.Ready, "")
	for name, c := range map[string]struct {
		annotation      string
		members         []healthscope.Member
		unlisted        []Unlisted
		missingRequired []string
		want            bool
	}{
		"the scope itself":                   {annotation: "new switches", members: []healthscope.Member{unhealthyMember(edge2)}, want: true},
		"all in clusters under maintenance":  {members: []healthscope.Member{unhealthyMember(edge1), unhealthyMember(edge1), well}, want: true},
		"one elsewhere":                      {members: []healthscope.Member{unhealthyMember(edge1), unhealthyMember(edge2)}},
		"one in a cluster that is not known": {members: []healthscope.Member{unhealthyMember(edge1), unhealthyMember("acme+moon")}},
		"what has no name there":             {unlisted: []Unlisted{unlisted(edge1, 8), unlisted(edge2, 9)}, want: true},
		"what has no name elsewhere":         {members: []healthscope.Member{unhealthyMember(edge1)}, unlisted: []Unlisted{unlisted(edge2, 8)}},
		"an app is not there at all":         {members: []healthscope.Member{unhealthyMember(edge1)}, missingRequired: []string{"db"}},
		"one elsewhere that does not count":  {members: []healthscope.Member{unhealthyMember(edge1), owned(unhealthyMember(edge2))}, want: true},
		"nothing":                            {members: []healthscope.Member{well}},
	} {
		s, v := scopeOf(corev1alpha2.HealthScopeSpec{}), judgement{missingRequired: c.missingRequired}
		s.Annotations = map[string]string{corev1alpha2.AnnotationMaintenance: c.annotation}
		for _, m := range c.members {
			v.Members = append(v.Members, AppMember{Member: &m})
		}
		v.count(nil, nil)
		for _, u := range c.unlisted {
			at := appCluster{u.App, u.Cluster}
			v.counts[at] = sum(v.counts[at], u.Summary)
		}
		if got := isMuted(s, v, state); got != c.want {
			t.Errorf("%s: isMuted is %t, want %t", name, got, c.want)
		}
	}
}
