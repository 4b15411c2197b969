package healthscope_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
)

// causesOf returns the causes of the members that have one, by member.
func causesOf(results ...healthscope.Result) map[string]string {
	causes := map[string]string{}
	for _, m := range healthscope.Judge(results, healthscope.DefaultPolicy(), noon).Members {
		if m.Cause != "" {
			causes[m.String()] = m.Cause
		}
	}
	return causes
}

func TestTheCauseIsAtTheBottom(t *testing.T) {
	claim := func(name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
		return result("", "PersistentVolumeClaim", name, state, append(change, because(healthscope.ReasonClaimPending, "no volume is bound"))...)
	}
	waiting := because(healthscope.ReasonUnschedulable, "unbound claims")
	set := result("apps", "StatefulSet", "db", healthscope.Pending, because(healthscope.ReasonReplicasNotReady, "0 of 1"))
	db0 := pod("db-0", healthscope.Pending, of("apps", "StatefulSet", "db"), waiting)
	shop, shop1 := of("apps", "Deployment", "shop"), of("apps", "ReplicaSet", "shop-1")
	const setWaits, setUnbound = "Pod db-0: waits for PersistentVolumeClaim data-db-0: no volume is bound", "Pod db-0: unbound claims"
	cases := map[string]struct {
		results []healthscope.Result
		// owner is the only object with a cause.
		owner, want string
	}{
		"of a pod and its ReplicaSet that have failed the pod": {
			[]healthscope.Result{
				deployment("shop", healthscope.Failed), replicaSet("shop-1", healthscope.Failed, shop, because(healthscope.ReasonReplicaFailure, "exceeded quota"), since(ago(time.Hour))),
				pod("shop-1-a", healthscope.Failed, shop1, since(ago(time.Minute)), because("OOMKilled", `container "web": terminated, exit code 137 (OOMKilled)`)),
			}, "Deployment/shop", `Pod shop-1-a: container "web": terminated, exit code 137 (OOMKilled)`,
		},
		"a pod that is Terminating is no cause": {
			[]healthscope.Result{deployment("shop", healthscope.Pending), pod("a", healthscope.Terminating, shop), pod("b", healthscope.Pending, shop, waiting)},
			"Deployment/shop", "Pod b: unbound claims",
		},
		"a ReplicaSet without pods": {
			[]healthscope.Result{deployment("shop", healthscope.Pending), replicaSet("shop-1", healthscope.Pending, shop, because(healthscope.ReasonNotObserved, "no controller"))},
			"Deployment/shop", "ReplicaSet shop-1: no controller",
		},
		"a pod that is ready but for a gate": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending), pod("b", healthscope.Ready, shop),
				pod("a", healthscope.Ready, shop, because(healthscope.ReasonReadinessGatesNotReady, "a gate is not"), func(r *healthscope.Result) { r.Warning = true }),
			}, "Deployment/shop", "Pod a: a gate is not",
		},
		"a pod of a Job of a CronJob": {
			[]healthscope.Result{
				result("batch", "CronJob", "backup", healthscope.Pending), job("backup-1", of("batch", "CronJob", "backup")),
				pod("backup-1-a", healthscope.Pending, of("batch", "Job", "backup-1"), waiting),
			}, "CronJob/backup", "Pod backup-1-a: unbound claims",
		},
		"a claim without a volume": {
			[]healthscope.Result{set, db0, claim("data-db-0", healthscope.Pending), claim("data-db-1", healthscope.Pending), claim("db-0", healthscope.Pending)}, "StatefulSet/db", setWaits,
		},
		"a claim that a pod has waited for too long": {
			[]healthscope.Result{set, pod("db-0", healthscope.Pending, of("apps", "StatefulSet", "db"), waiting, since(ago(time.Hour))), claim("data-db-0", healthscope.Pending)},
			"StatefulSet/db", setWaits,
		},
		"a claim that is bound": {[]healthscope.Result{set, db0, claim("data-db-0", healthscope.Ready)}, "StatefulSet/db", setUnbound},
		"a claim of a pod that runs, and crashes": {
			[]healthscope.Result{set, pod("db-0", healthscope.Failed, of("apps", "StatefulSet", "db"), because("CrashLoopBackOff", "CrashLoopBackOff")), claim("data-db-0", healthscope.Failed)},
			"StatefulSet/db", "Pod db-0: CrashLoopBackOff",
		},
		"a claim that may be another pod's": {
			[]healthscope.Result{set, db0, claim("x-my-db-0", healthscope.Pending), pod("my-db-0", healthscope.Pending, of("apps", "StatefulSet", "my-db"))}, "StatefulSet/db", setUnbound,
		},
		"a claim whose template ends as another pod begins": {
			[]healthscope.Result{set, db0, claim("amy-db-0", healthscope.Pending), pod("my-db-0", healthscope.Pending)},
			"StatefulSet/db", "Pod db-0: waits for PersistentVolumeClaim amy-db-0: no volume is bound",
		},
		"a claim in another namespace, or cluster": {
			[]healthscope.Result{
				set, db0, claim("data-db-0", healthscope.Pending, func(r *healthscope.Result) { r.Namespace = "zoo" }),
				claim("data-db-0", healthscope.Pending, func(r *healthscope.Result) { r.Cluster = "z" }),
			}, "StatefulSet/db", setUnbound,
		},
		"a Deployment's pod, whose claims are not known": {
			[]healthscope.Result{deployment("shop", healthscope.Pending), pod("a", healthscope.Pending, shop, waiting), claim("data-a", healthscope.Pending)},
			"Deployment/shop", "Pod a: unbound claims",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]string{tc.owner: tc.want}, causesOf(tc.results...)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnersAreFollowedAsFarAsKubernetesGoes(t *testing.T) {
	chain := []healthscope.Result{replicaSet("r00", healthscope.Ready)}
	for i := range 20 {
		above, below := string(rune('a'+i-1)), string(rune('a'+i))
		if i == 0 {
			above = "r00"
		}
		chain = append(chain, replicaSet(below, healthscope.Ready, of("apps", "ReplicaSet", above)))
	}
	members := healthscope.Judge(chain, healthscope.Policy{}, noon).Members
	if owned := members[2]; owned.Name != "c" || !owned.Owned {
		t.Errorf("%s, which is three below the top, is owned: %v", owned.Key, owned.Owned)
	}
	if last := members[20]; last.Name != "t" || last.Owned {
		t.Errorf("%s, at the end of a chain that was made to cost time, is owned: %v", last.Key, last.Owned)
	}
}

// FuzzCause asserts that a cause is one line of limited length, whatever a bundle contains about a pod.
func FuzzCause(f *testing.F) {
	f.Add("a", "CrashLoopBackOff", "it\ncrashes\u2028here", true)
	f.Add(strings.Repeat("x", 300), "", strings.Repeat("ä", 400), false)
	f.Add("a", "", strings.Repeat("ä", 400), false)
	f.Add("ab", "", strings.Repeat("ä", 400), false)
	f.Add("\xff", "\x00", "\xf0\x9f", true)
	f.Fuzz(func(t *testing.T, name, reason, message string, failed bool) {
		state := healthscope.Pending
		if failed {
			state = healthscope.Failed
		}
		for _, begin := range []time.Time{ago(time.Hour), noon} {
			one := pod(name, state, of("apps", "Deployment", "web"), because(healthscope.Reason(reason), message), since(begin))
			for _, m := range healthscope.Judge([]healthscope.Result{deployment("web", healthscope.Pending, since(noon)), one}, healthscope.DefaultPolicy(), noon).Members {
				if m.Kind == "Deployment" && !isLine(m.Cause) || m.Reason == healthscope.ReasonPendingTimeout && !isLine(m.Message) {
					t.Errorf("%s: cause %q, message %q", m.Kind, m.Cause, m.Message)
				}
			}
		}
	})
}

// isLine reports whether a text is one line of at most 256 bytes.
func isLine(text string) bool {
	return text != "" && len(text) <= 256 && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' })
}
