package healthscope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
)

// noon is when the tests look.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago is a time before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// result makes a raw result; change adds to it.
func result(group, kind, name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
	r := healthscope.Result{Key: healthscope.Key{Cluster: "edge", Group: group, Kind: kind, Namespace: "store", Name: name}, State: state}
	for _, c := range change {
		c(&r)
	}
	return r
}

// deployment, replicaSet and pod make results of these kinds; job, one that is running.
func deployment(name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
	return result("apps", "Deployment", name, state, change...)
}

func replicaSet(name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
	return result("apps", "ReplicaSet", name, state, change...)
}

func job(name string, change ...func(*healthscope.Result)) healthscope.Result {
	return result("batch", "Job", name, healthscope.Pending, change...)
}

func pod(name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
	return result("", "Pod", name, state, change...)
}

// of makes a result an owned one.
func of(group, kind, name string) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Owner = &healthscope.Owner{Group: group, Kind: kind, Name: name} }
}

// because gives a result reason and message.
func because(reason healthscope.Reason, message string) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Reason, r.Message = reason, message }
}

// since gives a result the time it entered its state.
func since(t time.Time) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Since = t }
}

// deadline gives a workload its own deadline.
func deadline(d time.Duration) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.ProgressDeadline = d }
}

// serving makes a result one that serves.
func serving(r *healthscope.Result) { r.Serving = true }

// report puts a verdict into lines: "Kind/name state counts", and what else there is to say.
func report(v healthscope.Verdict) []string {
	var lines []string
	for _, m := range v.Members {
		line := fmt.Sprintf("%s %s", m.Key, m.State)
		if m.Counts != m.State {
			line += " counts " + string(m.Counts)
		}
		if m.Owned {
			line += " owned"
		}
		if m.Reason != "" {
			line += " " + string(m.Reason)
		}
		if m.Message != "" {
			line += ": " + m.Message
		}
		if m.Cause != "" {
			line += " | " + m.Cause
		}
		lines = append(lines, line)
	}
	if !v.NextCheck.IsZero() {
		lines = append(lines, "next check in "+v.NextCheck.Sub(noon).String())
	}
	return lines
}

// judgeCase is a set of results with the verdict on it at noon.
type judgeCase struct {
	results []healthscope.Result
	policy  healthscope.Policy
	want    []string
}

// checkJudge judges cases at noon, also with their results in the opposite order.
func checkJudge(t *testing.T, cases map[string]judgeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, report(healthscope.Judge(tc.results, tc.policy, noon))); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			slices.Reverse(tc.results)
			if diff := cmp.Diff(tc.want, report(healthscope.Judge(tc.results, tc.policy, noon))); diff != "" {
				t.Errorf("verdict on the opposite order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnersCount(t *testing.T) {
	crash := because("CrashLoopBackOff", "it crashes")
	checkJudge(t, map[string]judgeCase{
		"nothing": {nil, healthscope.Policy{}, nil},
		"a surge rollout serves, and is Pending": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, serving, because(healthscope.ReasonRolloutInProgress, "")),
				replicaSet("shop-1", healthscope.Ready, of("apps", "Deployment", "shop")), replicaSet("shop-2", healthscope.Pending, of("apps", "Deployment", "shop")),
				pod("shop-1-a", healthscope.Ready, of("apps", "ReplicaSet", "shop-1")),
				pod("shop-2-b", healthscope.Pending, of("apps", "ReplicaSet", "shop-2"), because(healthscope.ReasonContainersNotReady, "")),
			}, healthscope.Policy{}, []string{
				"Pod/shop-1-a Ready owned", "Pod/shop-2-b Pending owned ContainersNotReady",
				"Deployment/shop Pending RolloutInProgress | Pod shop-2-b: ContainersNotReady",
				"ReplicaSet/shop-1 Ready owned", "ReplicaSet/shop-2 Pending owned",
			},
		},
		"a bad update that leaves the old pods serving is no failure": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, serving),
				pod("a", healthscope.Failed, of("apps", "Deployment", "shop"), crash),
			}, healthscope.Policy{}, []string{
				"Pod/a Failed owned CrashLoopBackOff: it crashes", "Deployment/shop Pending | Pod a: it crashes",
			},
		},
		"one replica that crashes is a failure": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, because(healthscope.ReasonReplicasNotReady, "0 of 1")), replicaSet("shop-1", healthscope.Pending, of("apps", "Deployment", "shop")),
				pod("shop-1-a", healthscope.Failed, of("apps", "ReplicaSet", "shop-1"), crash),
			}, healthscope.Policy{}, []string{
				"Pod/shop-1-a Failed owned CrashLoopBackOff: it crashes",
				"Deployment/shop Failed CrashLoopBackOff: it crashes | Pod shop-1-a: it crashes",
				"ReplicaSet/shop-1 Pending owned",
			},
		},
		"two of three is Pending, with the cause": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, because(healthscope.ReasonReplicasNotReady, "2 of 3")),
				pod("a", healthscope.Ready, of("apps", "Deployment", "shop")), pod("b", healthscope.Ready, of("apps", "Deployment", "shop")),
				pod("c", healthscope.Failed, of("apps", "Deployment", "shop"), crash),
			}, healthscope.Policy{}, []string{
				"Pod/a Ready owned", "Pod/b Ready owned", "Pod/c Failed owned CrashLoopBackOff: it crashes",
				"Deployment/shop Pending ReplicasNotReady: 2 of 3 | Pod c: it crashes",
			},
		},
		"the worst pod is the cause, of equal ones the oldest, then the first by name": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending), pod("a", healthscope.Pending, of("apps", "Deployment", "shop")),
				pod("b", healthscope.Failed, of("apps", "Deployment", "shop"), since(ago(time.Minute)), because("Evicted", "")),
				pod("d", healthscope.Failed, of("apps", "Deployment", "shop"), since(ago(time.Hour)), because("OOMKilled", "")),
				pod("c", healthscope.Failed, of("apps", "Deployment", "shop"), since(ago(time.Hour)), crash),
			}, healthscope.Policy{}, []string{
				"Pod/a Pending owned", "Pod/b Failed owned Evicted", "Pod/c Failed owned CrashLoopBackOff: it crashes", "Pod/d Failed owned OOMKilled",
				"Deployment/shop Failed CrashLoopBackOff: it crashes | Pod c: it crashes",
			},
		},
		"pods that have ended well, or are going, are no cause and no help": {
			[]healthscope.Result{
				result("apps", "StatefulSet", "db", healthscope.Pending),
				pod("db-0", healthscope.Ready, of("apps", "StatefulSet", "db"), because(healthscope.ReasonCompleted, "")),
				pod("db-1", healthscope.Terminating, of("apps", "StatefulSet", "db")),
				pod("db-2", healthscope.Failed, of("apps", "StatefulSet", "db"), crash),
			}, healthscope.Policy{}, []string{
				"Pod/db-0 Ready owned Completed", "Pod/db-1 Terminating counts Pending owned", "Pod/db-2 Failed owned CrashLoopBackOff: it crashes",
				"StatefulSet/db Failed CrashLoopBackOff: it crashes | Pod db-2: it crashes",
			},
		},
		"a workload that is Ready, or going, stays so": {
			[]healthscope.Result{
				deployment("up", healthscope.Ready), deployment("down", healthscope.Terminating),
				pod("a", healthscope.Failed, of("apps", "Deployment", "up"), crash), pod("b", healthscope.Failed, of("apps", "Deployment", "down"), crash),
			}, healthscope.Policy{}, []string{
				"Pod/a Failed owned CrashLoopBackOff: it crashes", "Pod/b Failed owned CrashLoopBackOff: it crashes",
				"Deployment/down Terminating counts Pending", "Deployment/up Ready",
			},
		},
		"a Job whose pod failed tries again": {
			[]healthscope.Result{job("import", because(healthscope.ReasonRunning, "")), pod("a", healthscope.Failed, of("batch", "Job", "import"), crash)},
			healthscope.Policy{}, []string{"Pod/a Failed owned CrashLoopBackOff: it crashes", "Job/import Pending Running | Pod a: it crashes"},
		},
		"an owner that is not here, or elsewhere, owns nothing": {
			[]healthscope.Result{
				deployment("shop", healthscope.Ready), pod("a", healthscope.Failed, of("apps", "ReplicaSet", "shop-1")),
				pod("b", healthscope.Failed, of("apps", "Deployment", "shop"), func(r *healthscope.Result) { r.Namespace = "other" }),
				pod("c", healthscope.Failed, of("apps", "Deployment", "shop"), func(r *healthscope.Result) { r.Cluster = "z" }),
			}, healthscope.Policy{}, []string{"Pod/b Failed", "Pod/a Failed", "Deployment/shop Ready", "Pod/c Failed"},
		},
		"what an operator makes counts by itself, but not its pods": {
			[]healthscope.Result{
				result("acme.example", "Gadget", "g", healthscope.Ready), deployment("g-web", healthscope.Failed, of("acme.example", "Gadget", "g")),
				pod("g-web-a", healthscope.Failed, of("apps", "Deployment", "g-web")), pod("g-0", healthscope.Ready, of("acme.example", "Gadget", "g")),
			}, healthscope.Policy{}, []string{"Pod/g-0 Ready owned", "Pod/g-web-a Failed owned", "Gadget/g Ready", "Deployment/g-web Failed | Pod g-web-a: Failed"},
		},
		"objects that own each other count each": {
			[]healthscope.Result{
				replicaSet("a", healthscope.Pending, of("apps", "ReplicaSet", "b")), replicaSet("b", healthscope.Pending, of("apps", "ReplicaSet", "a")),
				replicaSet("c", healthscope.Ready, of("apps", "ReplicaSet", "c")), pod("p", healthscope.Failed, of("apps", "ReplicaSet", "a")),
			}, healthscope.Policy{}, []string{"Pod/p Failed", "ReplicaSet/a Pending", "ReplicaSet/b Pending", "ReplicaSet/c Ready"},
		},
		"an object that is given twice counts once, as the worse": {
			[]healthscope.Result{pod("a", healthscope.Ready), pod("a", healthscope.Failed, crash), pod("a", healthscope.Pending)},
			healthscope.Policy{}, []string{"Pod/a Failed CrashLoopBackOff: it crashes"},
		},
		"an object that is given twice keeps its owner": {
			[]healthscope.Result{deployment("shop", healthscope.Ready), pod("a", healthscope.Ready, of("apps", "Deployment", "shop")), pod("a", healthscope.Ready)},
			healthscope.Policy{}, []string{"Pod/a Ready owned", "Deployment/shop Ready"},
		},
		"an object that is given twice keeps its time": {
			[]healthscope.Result{pod("a", healthscope.Pending), pod("a", healthscope.Pending, since(ago(time.Minute))), pod("a", healthscope.Pending, since(ago(time.Second)))},
			healthscope.Policy{PendingTimeout: 90 * time.Second}, []string{"Pod/a Pending", "next check in 30s"},
		},
		"a word that is no state is Unknown": {
			[]healthscope.Result{pod("a", "Dancing")}, healthscope.Policy{}, []string{"Pod/a Dancing counts Unknown"},
		},
	})
}

func TestTimeCounts(t *testing.T) {
	policy := healthscope.DefaultPolicy()
	graceful := healthscope.Policy{FailureGrace: 30 * time.Second}
	checkJudge(t, map[string]judgeCase{
		"Pending within its time": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(9*time.Minute)))}, policy, []string{"Pod/a Pending", "next check in 1m0s"},
		},
		"Pending at the end of its time": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(10*time.Minute)), because(healthscope.ReasonUnschedulable, "no node"))}, policy,
			[]string{"Pod/a Failed PendingTimeout: Pending for more than 10m0s: no node"},
		},
		"Pending without a word": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(time.Hour)))}, policy, []string{"Pod/a Failed PendingTimeout: Pending for more than 10m0s: no reason given"},
		},
		"Pending and serving may last": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour)), serving)}, policy, []string{"Deployment/shop Pending"},
		},
		"Pending since nobody knows when": {[]healthscope.Result{pod("a", healthscope.Pending)}, policy, []string{"Pod/a Pending"}},
		"Pending where nothing times out": {[]healthscope.Result{pod("a", healthscope.Pending, since(ago(time.Hour)))}, healthscope.Policy{}, []string{"Pod/a Pending"}},
		"a workload and its pods have its own deadline": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, since(ago(time.Minute)), deadline(2*time.Minute)),
				pod("a", healthscope.Pending, since(ago(30*time.Second)), of("apps", "Deployment", "shop")),
			}, policy, []string{"Pod/a Pending owned", "Deployment/shop Pending | Pod a: Pending", "next check in 1m0s"},
		},
		"a workload past its own deadline": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(2*time.Minute)), deadline(time.Minute), because(healthscope.ReasonReplicasNotReady, ""))}, policy,
			[]string{"Deployment/shop Failed PendingTimeout: Pending for more than 1m0s: ReplicasNotReady"},
		},
		"a Job may run as long as it takes": {
			[]healthscope.Result{job("import", since(ago(100*time.Hour))), job("export", since(ago(100*time.Hour)), serving)}, policy,
			[]string{"Job/export Pending", "Job/import Pending"},
		},
		"a Job's pod that does not start is its cause": {
			[]healthscope.Result{job("import", since(ago(time.Hour))), pod("a", healthscope.Pending, since(ago(time.Hour)), of("batch", "Job", "import"), because(healthscope.ReasonUnschedulable, "no node"))},
			policy, []string{
				"Pod/a Failed owned PendingTimeout: Pending for more than 10m0s: no node", "Job/import Pending | Pod a: Pending for more than 10m0s: no node",
			},
		},
		"expected and missing, for a while": {
			[]healthscope.Result{deployment("shop", healthscope.NotPresent, since(ago(20*time.Second)))}, policy, []string{"Deployment/shop NotPresent counts Pending", "next check in 40s"},
		},
		"expected and missing for too long": {
			[]healthscope.Result{deployment("shop", healthscope.NotPresent, since(ago(time.Minute)))}, policy, []string{"Deployment/shop NotPresent counts Failed"},
		},
		"expected and missing since nobody knows when": {
			[]healthscope.Result{deployment("shop", healthscope.NotPresent)}, policy, []string{"Deployment/shop NotPresent counts Pending"},
		},
		"a failure within its grace": {
			[]healthscope.Result{pod("a", healthscope.Failed, since(ago(10*time.Second)), because("Evicted", ""))}, graceful, []string{"Pod/a Pending Evicted", "next check in 20s"},
		},
		"a failure after its grace": {
			[]healthscope.Result{pod("a", healthscope.Failed, since(ago(30*time.Second)), because("Evicted", ""))}, graceful, []string{"Pod/a Failed Evicted"},
		},
		"a failure of a pod within its grace does not fail its workload": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour))), pod("a", healthscope.Failed, since(ago(10*time.Second)), of("apps", "Deployment", "shop"), because("Evicted", ""))},
			graceful, []string{"Pod/a Pending owned Evicted", "Deployment/shop Pending | Pod a: Evicted", "next check in 20s"},
		},
		"the next check is the earliest": {
			[]healthscope.Result{pod("a", healthscope.Pending, since(ago(time.Minute))), pod("b", healthscope.Pending, since(ago(2*time.Minute))), deployment("c", healthscope.NotPresent, since(noon))}, policy,
			[]string{"Pod/a Pending", "Pod/b Pending", "Deployment/c NotPresent counts Pending", "next check in 1m0s"},
		},
		"Terminating, Unknown and Ready do not change by time": {
			[]healthscope.Result{pod("a", healthscope.Terminating, since(ago(time.Hour))), pod("b", healthscope.Unknown, since(ago(time.Hour))), pod("c", healthscope.Ready, since(ago(time.Hour)))}, policy,
			[]string{"Pod/a Terminating counts Pending", "Pod/b Unknown", "Pod/c Ready"},
		},
	})
}

func TestAFailureIsAsOldAsItIs(t *testing.T) {
	cases := map[string]struct {
		results []healthscope.Result
		want    time.Time
	}{
		"a timeout is as old as the deadline": {[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Hour)))}, ago(50 * time.Minute)},
		"a crash is as old as the pod's": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(5*time.Minute))), pod("a", healthscope.Failed, since(ago(time.Minute)), of("apps", "Deployment", "shop"))}, ago(time.Minute),
		},
		"but not older than the workload's trouble": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, since(ago(time.Minute))), pod("a", healthscope.Failed, since(ago(time.Hour)), of("apps", "Deployment", "shop"))}, ago(time.Minute),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, m := range healthscope.Judge(tc.results, healthscope.DefaultPolicy(), noon).Members {
				if strings.HasPrefix(m.String(), "Deployment/") && (m.State != healthscope.Failed || !m.Since.Equal(tc.want)) {
					t.Errorf("%s since %v, want Failed since %v", m.State, m.Since, tc.want)
				}
			}
		})
	}
}

func TestEqualResultsForOneObjectAreChosenFromRegardlessOfOrder(t *testing.T) {
	variants := map[string]func(*healthscope.Result){
		"uid":         func(r *healthscope.Result) { r.UID = "u" },
		"version":     func(r *healthscope.Result) { r.Version = "v2" },
		"labels":      func(r *healthscope.Result) { r.Labels = map[string]string{"a": "b"} },
		"replicas":    func(r *healthscope.Result) { r.Replicas = &healthscope.Replicas{Ready: 1} },
		"no replicas": func(r *healthscope.Result) { r.Replicas = &healthscope.Replicas{} },
		"owner":       of("apps", "ReplicaSet", "other"),
		"serving":     serving,
		"progressing": func(r *healthscope.Result) { r.Progressing = true },
		"suspended":   func(r *healthscope.Result) { r.Suspended = true },
		"warning":     func(r *healthscope.Result) { r.Warning = true },
		"deadline":    deadline(time.Minute),
	}
	for name, change := range variants {
		t.Run(name, func(t *testing.T) {
			owner := of("apps", "ReplicaSet", "one")
			a, b := pod("p", healthscope.Pending, owner), pod("p", healthscope.Pending, owner, change)
			forward := healthscope.Judge([]healthscope.Result{a, b}, healthscope.Policy{}, noon)
			backward := healthscope.Judge([]healthscope.Result{b, a}, healthscope.Policy{}, noon)
			if diff := cmp.Diff(forward, backward); diff != "" {
				t.Errorf("verdict (-one way +other way):\n%s", diff)
			}
		})
	}
}
