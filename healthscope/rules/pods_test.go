package rules_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

func TestReadyPods(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"running": {
			`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Always, containers: [{name: web}]},
			  status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, restartCount: 2, state: {running: {}}}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(1, 1)},
		},
		"never to be restarted, and ready": {
			`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Running, containerStatuses: [{name: web, ready: true}, {name: log, ready: "true"}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(2, 2)},
		},
		"status only, without phase and conditions": {
			`{apiVersion: v1, kind: Pod, status: {containerStatuses: [{name: web, ready: true}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(1, 1)},
		},
		"completed": {
			`{apiVersion: v1, kind: Pod, status: {phase: Succeeded, containerStatuses: [{name: web, ready: false, state: {terminated: {exitCode: 0, reason: Completed}}}]}}`,
			healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonCompleted, Replicas: of(0, 1)},
		},
		"a debug container does not count": {
			`{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}], ephemeralContainerStatuses: [{name: debug, ready: false}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(1, 1)},
		},
		"readiness gate": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: true}],
			  conditions: [{type: ContainersReady, status: "True"}, {type: Ready, status: "False", reason: ReadinessGatesNotReady, message: target not registered}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonReadinessGatesNotReady, Message: "all containers are ready, a readiness gate is not: target not registered",
				Serving: true, Warning: true, Replicas: of(1, 1),
			},
		},
		"sidecar down": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: true}],
			  initContainerStatuses: [{name: setup, ready: true, state: {terminated: {exitCode: 0}}}, {name: proxy, ready: false, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, reason: Error}}}],
			  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonContainersNotReady, Message: `container "proxy": CrashLoopBackOff, last exit code 2 (Error)`,
				Serving: true, Warning: true, Replicas: of(1, 1),
			},
		},
		"ready containers in a pod that is not": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: true}], conditions: [{type: Ready, status: "False"}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonContainersNotReady, Message: "all containers are ready, the pod is not",
				Serving: true, Warning: true, Replicas: of(1, 1),
			},
		},
		"ready containers in a pod that was given up": {
			`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Preempting, containerStatuses: [{name: web, ready: true}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: "Preempting", Message: "the pod has failed, its containers still count as ready",
				Serving: true, Warning: true, Replicas: of(1, 1),
			},
		},
		"ready containers in a phase of the future": {
			`{apiVersion: v1, kind: Pod, status: {phase: Hibernating, containerStatuses: [{name: web, ready: true}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonUnknownPhase, Message: `all containers are ready, the phase "Hibernating" is not known`,
				Serving: true, Warning: true, Replicas: of(1, 1),
			},
		},
	})
}

func TestPendingPods(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"scheduled, no container has a status": {
			`{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: "0 of 1 containers have a status", Replicas: of(0, 1)},
		},
		"fewer statuses than containers": {
			`{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}, {name: log}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: "1 of 2 containers have a status", Replicas: of(1, 2)},
		},
		"one of two ready": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: true}, {name: log, ready: false, state: {running: {}}}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: `container "log": not ready`, Replicas: of(1, 2)},
		},
		"one has ended well, the other is starting": {
			`{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Running, containerStatuses: [{name: load, ready: false, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: web, ready: false, state: {running: {}}}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: `container "web": not ready`, Replicas: of(0, 2)},
		},
		"being created": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: ContainerCreating}}}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: `container "web": ContainerCreating`, Replicas: of(0, 1)},
		},
		"restarted once": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: false, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: `container "web": not ready, last exit code 137 (OOMKilled)`, Replicas: of(0, 1)},
		},
		"ended, about to be restarted": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, ready: false, state: {terminated: {exitCode: 3}}}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonContainersNotReady, Message: `container "web": terminated, exit code 3`, Replicas: of(0, 1)},
		},
		"no node takes it": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/5 nodes are available}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonUnschedulable, Message: "0/5 nodes are available", Replicas: of(0, 0)},
		},
		"held back by a scheduling gate": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: "SchedulingGated", Replicas: of(0, 0)},
		},
		"its node is lost, and its containers count as ready": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, reason: NodeLost, containerStatuses: [{name: web, ready: true}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonNodeLost, Message: "the node no longer reports", Replicas: of(1, 1)},
		},
		"a phase of the future": {
			`{apiVersion: v1, kind: Pod, status: {phase: Hibernating}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonUnknownPhase, Message: `the phase "Hibernating" is not known`, Warning: true, Replicas: of(0, 0)},
		},
		"not observed": {
			`{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonNotObserved, Message: "no controller has reported on it yet", Replicas: of(0, 1)},
		},
	})
}

func TestFailedPods(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"crash loop": {
			`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: log, ready: true}, {name: web, ready: false, restartCount: 9,
			  state: {waiting: {reason: CrashLoopBackOff, message: back-off 5m0s restarting failed container}}, lastState: {terminated: {exitCode: 1, reason: Error, message: token=s3cr3t}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: "CrashLoopBackOff", Message: `container "web": CrashLoopBackOff, last exit code 1 (Error): token=***`, Replicas: of(1, 2)},
		},
		"init container in a crash loop": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, initContainerStatuses: [{name: setup, ready: false, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 7}}}],
			  containerStatuses: [{name: web, ready: false, state: {waiting: {reason: PodInitializing}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: "CrashLoopBackOff", Message: `container "setup": CrashLoopBackOff, last exit code 7`, Replicas: of(0, 1)},
		},
		"image not found": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: web, image: "registry.example/shop:9", ready: false, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: "ImagePullBackOff", Message: `container "web": ImagePullBackOff, image registry.example/shop:9`, Replicas: of(0, 1)},
		},
		"a ConfigMap is missing": {
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CreateContainerConfigError, message: configmap "shop" not found}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: "CreateContainerConfigError", Message: `container "web": CreateContainerConfigError, configmap "shop" not found`, Replicas: of(0, 1)},
		},
		"evicted": {
			`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted, message: the node was low on disk}}`,
			healthscope.Result{State: healthscope.Failed, Reason: "Evicted", Message: "the node was low on disk", Replicas: of(0, 0)},
		},
		"failed without a word": {
			`{apiVersion: v1, kind: Pod, status: {phase: Failed, containerStatuses: [{name: web, ready: false, state: {terminated: {exitCode: 1, reason: Error}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonPodFailed, Message: `container "web": terminated, exit code 1 (Error)`, Replicas: of(0, 1)},
		},
		"failed without an exit code": {
			`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: bad, containerStatuses: [{name: web, ready: false, state: {terminated: {reason: ContainerStatusUnknown}}}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonPodFailed, Message: `container "web": terminated, ContainerStatusUnknown`, Replicas: of(0, 1)},
		},
		"failed with a reason that is none": {
			`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: "Rm -rf /; <b>"}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonPodFailed, Replicas: of(0, 0)},
		},
	})
}

func TestTerminalWaitingReasonsFail(t *testing.T) {
	reasons := []string{
		"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
		"ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
	}
	if diff := cmp.Diff(reasons, slices.Sorted(maps.Keys(rules.TerminalWaitingReasons))); diff != "" {
		t.Errorf("reasons (-tested +documented):\n%s", diff)
	}
	for _, reason := range reasons {
		for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
			t.Run(reason+" in "+list, func(t *testing.T) {
				checkResults(t, map[string]resultCase{"": {
					`{apiVersion: v1, kind: Pod, spec: {containers: [{name: web}]}, status: {phase: Pending, ` + list + `: [{name: web, ready: false, state: {waiting: {reason: ` + reason + `}}}]}}`,
					healthscope.Result{State: healthscope.Failed, Reason: healthscope.Reason(reason), Message: `container "web": ` + reason, Replicas: of(0, 1)},
				}})
			})
		}
	}
}

// crashing returns a pod whose container terminated with a message.
func crashing(message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"status": map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
			"name": "app", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
			"lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(1), "reason": "Error", "message": message}},
		}}},
	}}
}

// TestTerminationMessages asserts that the message of a crashing pod ends with the end of its container's termination message,
// in one line, with limited length, and without text that looks like a secret.
func TestTerminationMessages(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"none":                  {"", ""},
		"one line":              {"cannot open /data: permission denied", ": cannot open /data: permission denied"},
		"white space":           {"  cannot\topen\r\n\n", ": cannot open"},
		"blanks only":           {" \n \n", ""},
		"two lines":             {"starting\nno such host db.store", ": starting no such host db.store"},
		"the end of a log":      {strings.Repeat("listening on every port that there is\n", 50) + "panic: no route", ": " + strings.Repeat("listening on every port that there is ", 2) + "panic: no route"},
		"one endless line":      {"disk full " + strings.Repeat("x", 4000), ": disk full " + strings.Repeat("x", 110)},
		"not text":              {"bad \xff\x00 end", ": bad \uFFFD end"},
		"a password":            {"login failed: user=shop password=hunter2, host=db", ": login failed: user=shop password=***, host=db"},
		"a quoted password":     {`{"db_password": "hun ter2", "host": "db"}`, `: {"db_password": ***, "host": "db"}`},
		"a token that is none":  {"the token is expired", ": the token is expired"},
		"a token":               {"API_TOKEN: abc.def expired", ": API_TOKEN: *** expired"},
		"a key":                 {"AWS_SECRET_ACCESS_KEY=wJalr/x refused", ": AWS_SECRET_ACCESS_KEY=*** refused"},
		"a bearer token":        {"GET /: 401, sent Authorization: Bearer eyJh.eyJz.x-_", ": GET /: 401, sent Authorization: Bearer ***"},
		"a password in a URL":   {"dial postgres://shop:hunter2@db:5432/shop: refused", ": dial postgres://shop:***@db:5432/shop: refused"},
		"a URL without one":     {"dial https://db:5432/shop: refused", ": dial https://db:5432/shop: refused"},
		"a secret that is none": {`secret "shop-key" not found`, `: secret "shop-key" not found`},
		"a secret near the end": {strings.Repeat("y", 90) + " password=hunter2hunter2hunter2hunter2", ": " + strings.Repeat("y", 90) + " password=***"},
		"a secret before the limit": {
			"connect with password=" + strings.Repeat("z", 600) + " failed", ": connect with password=***",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := `container "app": CrashLoopBackOff, last exit code 1 (Error)` + tc.want
			if got := rules.Evaluate(crashing(tc.message), rules.Options{}); got.Message != want {
				t.Errorf("got  %q\nwant %q", got.Message, want)
			}
		})
	}
}
