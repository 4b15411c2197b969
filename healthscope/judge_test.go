package healthscope_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
)

// noon is the time at which the tests judge.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago returns the time that is d before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// result returns a raw result, after the changes to it.
func result(group, kind, name string, state healthscope.State, change ...func(*healthscope.Result)) healthscope.Result {
	r := healthscope.Result{Key: healthscope.Key{Cluster: "edge", Group: group, Kind: kind, Namespace: "store", Name: name}, State: state}
	for _, c := range change {
		c(&r)
	}
	return r
}

// deployment, replicaSet and pod return results of these kinds. job returns the result of a running Job.
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

// of sets the owner of a result.
func of(group, kind, name string) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Owner = &healthscope.Owner{Group: group, Kind: kind, Name: name} }
}

// because sets the reason and the message of a result.
func because(reason healthscope.Reason, message string) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Reason, r.Message = reason, message }
}

// since sets the time at which a result entered its state.
func since(t time.Time) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Since = t }
}

// deadline sets the progress deadline of a workload.
func deadline(d time.Duration) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.ProgressDeadline = d }
}

// replicas sets the replicas of a workload.
func replicas(ready, desired int32) func(*healthscope.Result) {
	return func(r *healthscope.Result) { r.Replicas = &healthscope.Replicas{Ready: ready, Desired: desired} }
}

// serving marks a result as serving.
func serving(r *healthscope.Result) { r.Serving = true }

// report returns a judgement as lines: "Kind/name state counts", followed by the other fields that are set.
func report(v healthscope.Judgement) []string {
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

// compareLines compares two reports.
func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// judgeCase is a set of results with the expected judgement at noon.
type judgeCase struct {
	results []healthscope.Result
	want    []string
}

// checkJudge judges cases at noon, also with their results in the opposite order.
func checkJudge(t *testing.T, policy healthscope.Policy, cases map[string]judgeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareLines(t, tc.want, report(healthscope.Judge(tc.results, policy, noon)))
			slices.Reverse(tc.results)
			compareLines(t, tc.want, report(healthscope.Judge(tc.results, policy, noon)))
		})
	}
}

func TestOwnersCount(t *testing.T) {
	crash := because("CrashLoopBackOff", "it crashes")
	shop, shop1 := of("apps", "Deployment", "shop"), of("apps", "ReplicaSet", "shop-1")
	database := of("postgresql.cnpg.io", "Cluster", "db")
	checkJudge(t, healthscope.DefaultPolicy(), map[string]judgeCase{
		"nothing": {},
		"a surge rollout serves, and is Pending": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, serving, because(healthscope.ReasonRolloutInProgress, "")),
				replicaSet("shop-1", healthscope.Ready, shop), replicaSet("shop-2", healthscope.Pending, shop), pod("shop-1-a", healthscope.Ready, shop1),
				pod("shop-2-b", healthscope.Pending, of("apps", "ReplicaSet", "shop-2"), because(healthscope.ReasonContainersNotReady, "")),
			}, []string{
				"Pod/shop-1-a Ready owned", "Pod/shop-2-b Pending owned ContainersNotReady",
				"Deployment/shop Pending RolloutInProgress | Pod shop-2-b: ContainersNotReady",
				"ReplicaSet/shop-1 Ready owned", "ReplicaSet/shop-2 Pending owned",
			},
		},
		"a bad update that leaves the old pods serving is no failure": {
			[]healthscope.Result{deployment("shop", healthscope.Pending, serving), pod("a", healthscope.Failed, shop, crash)},
			[]string{"Pod/a Failed owned CrashLoopBackOff: it crashes", "Deployment/shop Pending | Pod a: CrashLoopBackOff: it crashes"},
		},
		"one replica that crashes is a failure": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, because(healthscope.ReasonReplicasNotReady, "0 of 1")),
				replicaSet("shop-1", healthscope.Pending, shop), pod("shop-1-a", healthscope.Failed, shop1, crash),
			}, []string{
				"Pod/shop-1-a Failed owned CrashLoopBackOff: it crashes",
				"Deployment/shop Failed CrashLoopBackOff: it crashes | Pod shop-1-a: CrashLoopBackOff: it crashes",
				"ReplicaSet/shop-1 Pending owned",
			},
		},
		"one of three that crashes is none": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending, because(healthscope.ReasonReplicasNotReady, "2 of 3")),
				pod("a", healthscope.Ready, shop), pod("b", healthscope.Ready, shop), pod("c", healthscope.Failed, shop, crash),
			}, []string{
				"Pod/a Ready owned", "Pod/b Ready owned", "Pod/c Failed owned CrashLoopBackOff: it crashes",
				"Deployment/shop Pending ReplicasNotReady: 2 of 3 | Pod c: CrashLoopBackOff: it crashes",
			},
		},
		"the worst pod is the cause, of equal ones the oldest, then the first by name": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending), pod("a", healthscope.Pending, shop),
				pod("b", healthscope.Failed, shop, since(ago(time.Minute)), because("Evicted", "")),
				pod("d", healthscope.Failed, shop, since(ago(time.Hour)), because("OOMKilled", "")),
				pod("c", healthscope.Failed, shop, since(ago(time.Hour)), crash),
			}, []string{
				"Pod/a Pending owned", "Pod/b Failed owned Evicted", "Pod/c Failed owned CrashLoopBackOff: it crashes", "Pod/d Failed owned OOMKilled",
				"Deployment/shop Failed CrashLoopBackOff: it crashes | Pod c: CrashLoopBackOff: it crashes",
			},
		},
		"a pod that has completed does not serve": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending), pod("a", healthscope.Ready, shop, because(healthscope.ReasonCompleted, "")), pod("b", healthscope.Failed, shop, crash),
			}, []string{
				"Pod/a Ready owned Completed", "Pod/b Failed owned CrashLoopBackOff: it crashes",
				"Deployment/shop Failed CrashLoopBackOff: it crashes | Pod b: CrashLoopBackOff: it crashes",
			},
		},
		"a workload that is Ready or Terminating stays so": {
			[]healthscope.Result{
				deployment("up", healthscope.Ready), deployment("down", healthscope.Terminating),
				pod("a", healthscope.Failed, of("apps", "Deployment", "up"), crash), pod("b", healthscope.Failed, of("apps", "Deployment", "down"), crash),
			}, []string{
				"Pod/a Failed owned CrashLoopBackOff: it crashes", "Pod/b Failed owned CrashLoopBackOff: it crashes",
				"Deployment/down Terminating counts Pending", "Deployment/up Ready",
			},
		},
		"only pods fail a workload": {
			[]healthscope.Result{
				deployment("shop", healthscope.Pending), replicaSet("shop-1", healthscope.Failed, shop, because(healthscope.ReasonReplicaFailure, "quota")),
				pod("shop-1-a", healthscope.Pending, shop1),
			}, []string{
				"Pod/shop-1-a Pending owned", "Deployment/shop Pending | ReplicaSet shop-1: ReplicaFailure: quota", "ReplicaSet/shop-1 Failed owned ReplicaFailure: quota",
			},
		},
		"a Job whose pod has failed tries again": {
			[]healthscope.Result{job("import", because(healthscope.ReasonRunning, "")), pod("a", healthscope.Failed, of("batch", "Job", "import"), crash)},
			[]string{"Pod/a Failed owned CrashLoopBackOff: it crashes", "Job/import Pending Running | Pod a: CrashLoopBackOff: it crashes"},
		},
		"the pods of a Job do not fail the Job's owner, however long they take": {
			[]healthscope.Result{
				result("postgresql.cnpg.io", "Cluster", "db", healthscope.Pending, because(healthscope.ReasonInProgress, "setting up")),
				job("db-1-initdb", database, since(ago(time.Hour)), because(healthscope.ReasonRunning, "")),
				pod("db-1-initdb-a", healthscope.Failed, of("batch", "Job", "db-1-initdb"), since(ago(time.Hour)), crash),
				pod("db-1-initdb-b", healthscope.Pending, of("batch", "Job", "db-1-initdb"), since(ago(time.Hour)), because(healthscope.ReasonUnschedulable, "no node")),
			}, []string{
				"Pod/db-1-initdb-a Failed owned CrashLoopBackOff: it crashes", "Pod/db-1-initdb-b Pending owned Unschedulable: no node", "Job/db-1-initdb Pending owned Running",
				"Cluster/db Pending InProgress: setting up | Pod db-1-initdb-a: CrashLoopBackOff: it crashes",
			},
		},
		"a pod of its own fails it beside one of a Job": {
			[]healthscope.Result{
				result("postgresql.cnpg.io", "Cluster", "db", healthscope.Pending), job("init", database),
				pod("init-a", healthscope.Failed, of("batch", "Job", "init"), because("Evicted", "")), pod("db-1", healthscope.Failed, database, crash),
			}, []string{
				"Pod/db-1 Failed owned CrashLoopBackOff: it crashes", "Pod/init-a Failed owned Evicted", "Job/init Pending owned",
				"Cluster/db Failed CrashLoopBackOff: it crashes | Pod init-a: Evicted",
			},
		},
		"a workload that counts ready pods which are not listed is no failure": {
			[]healthscope.Result{
				deployment("none", healthscope.Pending, replicas(0, 3)), pod("a", healthscope.Failed, of("apps", "Deployment", "none"), crash),
				deployment("some", healthscope.Pending, replicas(2, 3)), pod("b", healthscope.Failed, of("apps", "Deployment", "some"), crash),
			}, []string{
				"Pod/a Failed owned CrashLoopBackOff: it crashes", "Pod/b Failed owned CrashLoopBackOff: it crashes",
				"Deployment/none Failed CrashLoopBackOff: it crashes | Pod a: CrashLoopBackOff: it crashes",
				"Deployment/some Pending | Pod b: CrashLoopBackOff: it crashes",
			},
		},
		"an owner that is not here, or elsewhere, owns nothing": {
			[]healthscope.Result{
				deployment("shop", healthscope.Ready), pod("a", healthscope.Failed, shop1),
				pod("b", healthscope.Failed, shop, func(r *healthscope.Result) { r.Namespace = "other" }),
				pod("c", healthscope.Failed, shop, func(r *healthscope.Result) { r.Cluster = "z" }),
			}, []string{"Pod/b Failed", "Pod/a Failed", "Deployment/shop Ready", "Pod/c Failed"},
		},
		"what an operator creates counts on its own, but not its pods": {
			[]healthscope.Result{
				result("acme.example", "Gadget", "g", healthscope.Ready), deployment("g-web", healthscope.Failed, of("acme.example", "Gadget", "g")),
				pod("g-web-a", healthscope.Failed, of("apps", "Deployment", "g-web")), pod("g-0", healthscope.Ready, of("acme.example", "Gadget", "g")),
			}, []string{"Pod/g-0 Ready owned", "Pod/g-web-a Failed owned", "Gadget/g Ready", "Deployment/g-web Failed | Pod g-web-a: Failed"},
		},
		"objects that own each other count each": {
			[]healthscope.Result{
				replicaSet("a", healthscope.Pending, of("apps", "ReplicaSet", "b")), replicaSet("b", healthscope.Pending, of("apps", "ReplicaSet", "a")),
				replicaSet("c", healthscope.Ready, of("apps", "ReplicaSet", "c")), pod("p", healthscope.Failed, of("apps", "ReplicaSet", "a")),
			}, []string{"Pod/p Failed", "ReplicaSet/a Pending", "ReplicaSet/b Pending", "ReplicaSet/c Ready"},
		},
		"an object that is given twice counts once, as the worse": {
			[]healthscope.Result{pod("a", healthscope.Ready), pod("a", healthscope.Failed, crash), pod("a", healthscope.Pending)},
			[]string{"Pod/a Failed CrashLoopBackOff: it crashes"},
		},
		"an object that is given twice keeps its owner": {
			[]healthscope.Result{deployment("shop", healthscope.Ready), pod("a", healthscope.Ready, shop), pod("a", healthscope.Ready)},
			[]string{"Pod/a Ready owned", "Deployment/shop Ready"},
		},
		"an object that is given twice keeps its time": {
			[]healthscope.Result{pod("a", healthscope.Pending), pod("a", healthscope.Pending, since(ago(time.Minute))), pod("a", healthscope.Pending, since(ago(time.Second)))},
			[]string{"Pod/a Pending", "next check in 9m0s"},
		},
		"a word that is no state is Unknown": {[]healthscope.Result{pod("a", "Dancing")}, []string{"Pod/a Dancing counts Unknown"}},
	})
}

func TestEqualResultsForOneObjectAreChosenFromRegardlessOfOrder(t *testing.T) {
	variants := map[string]func(*healthscope.Result){
		"uid":         func(r *healthscope.Result) { r.UID = "u" },
		"version":     func(r *healthscope.Result) { r.Version = "v2" },
		"labels":      func(r *healthscope.Result) { r.Labels = map[string]string{"a": "b"} },
		"replicas":    replicas(1, 0),
		"no replicas": replicas(0, 0),
		"owner":       of("apps", "ReplicaSet", "other"),
		"serving":     serving,
		"suspended":   func(r *healthscope.Result) { r.Suspended = true },
		"warning":     func(r *healthscope.Result) { r.Warning = true },
		"deadline":    deadline(time.Minute),
		"timed":       func(r *healthscope.Result) { r.Timed = true },
		"progress":    func(r *healthscope.Result) { r.Progress = &healthscope.Progress{Ready: 1} },
		"no progress": func(r *healthscope.Result) { r.Progress = &healthscope.Progress{} },
		"history": func(r *healthscope.Result) {
			r.History = &healthscope.Member{Result: healthscope.Result{State: healthscope.Failed}}
		},
	}
	policy := healthscope.Policy{RecoveryHold: time.Hour}
	for name, change := range variants {
		owner, begin := of("apps", "ReplicaSet", "one"), since(ago(time.Minute))
		a, b := pod("p", healthscope.Pending, owner, begin), pod("p", healthscope.Pending, owner, begin, change)
		forward, backward := healthscope.Judge([]healthscope.Result{a, b}, policy, noon), healthscope.Judge([]healthscope.Result{b, a}, policy, noon)
		if diff := cmp.Diff(forward, backward); diff != "" {
			t.Errorf("%s: judgement (-one way +other way):\n%s", name, diff)
		}
	}
}
