package rules_test

import (
	"testing"

	"github.com/healthscope/healthscope/healthscope"
)

func TestJobs(t *testing.T) {
	running := func(message string, serving bool) healthscope.Result {
		return healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonRunning, Message: message, Serving: serving}
	}
	checkResults(t, map[string]resultCase{
		"running": {`{apiVersion: batch/v1, kind: Job, spec: {completions: 2}, status: {active: 1, succeeded: 1, ready: 1, startTime: "2026-02-01T00:00:00Z"}}`, running("1 active, 1 succeeded, 0 failed", true)},
		"running, in a cluster that does not count ready pods": {
			`{apiVersion: batch/v1, kind: Job, status: {active: 1, startTime: "2026-02-01T00:00:00Z"}}`, running("1 active, 0 succeeded, 0 failed", true),
		},
		"its pod does not start": {`{apiVersion: batch/v1, kind: Job, status: {active: 1, ready: 0, startTime: "2026-02-01T00:00:00Z"}}`, running("1 active, 0 succeeded, 0 failed", false)},
		"tries again":            {`{apiVersion: batch/v1, kind: Job, status: {active: 1, ready: 1, failed: 2, startTime: "2026-02-01T00:00:00Z"}}`, running("1 active, 0 succeeded, 2 failed", true)},
		"resumed": {
			`{apiVersion: batch/v1, kind: Job, spec: {suspend: false}, status: {active: 1, ready: 1, startTime: "2026-02-01T00:00:00Z", conditions: [{type: Suspended, status: "False"}]}}`,
			running("1 active, 0 succeeded, 0 failed", true),
		},
		"complete": {
			`{apiVersion: batch/v1, kind: Job, status: {succeeded: 3, conditions: [{type: Complete, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonCompleted, Message: "0 active, 3 succeeded, 0 failed"},
		},
		"failed": {
			`{apiVersion: batch/v1, kind: Job, status: {failed: 4, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too many}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonJobFailed, Message: "BackoffLimitExceeded: too many; 0 active, 0 succeeded, 4 failed"},
		},
		"about to fail": {
			`{apiVersion: batch/v1, kind: Job, status: {failed: 4, terminating: 1, conditions: [{type: FailureTarget, status: "True", reason: PodFailurePolicy}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonJobFailed, Message: "PodFailurePolicy; 0 active, 0 succeeded, 4 failed"},
		},
		"suspended, by its spec": {
			`{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}`,
			healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonSuspended, Message: "the Job is suspended", Suspended: true},
		},
		"suspended, by its status alone": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonSuspended, Message: "the Job is suspended", Suspended: true},
		},
		"just created": {`{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {}}`, notObserved},
	})
}

func TestNetworkKinds(t *testing.T) {
	noAddress := healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonNoAddress, Message: "the ingress has no address", Warning: true}
	waiting := healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonLoadBalancerPending, Message: "the load balancer has no address yet"}
	ready := healthscope.Result{State: healthscope.Ready}
	checkResults(t, map[string]resultCase{
		"cluster IP":                       {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.1.2.3}, status: {loadBalancer: {}}}`, ready},
		"spec cut off":                     {`{apiVersion: v1, kind: Service, spec: {}, status: {loadBalancer: {}}}`, ready},
		"external name":                    {`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: shop.example}}`, ready},
		"load balancer without address":    {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.1.2.3}, status: {loadBalancer: {}}}`, waiting},
		"load balancer with address":       {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: lb.example}]}}}`, ready},
		"load balancer with external IP":   {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, externalIPs: [192.0.2.7]}, status: {loadBalancer: {}}}`, ready},
		"a Service of another API":         {`{apiVersion: serving.knative.dev/v1, kind: Service, spec: {type: LoadBalancer}, status: {conditions: [{type: Ready, status: "True"}]}}`, ready},
		"ingress with address":             {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{ip: 192.0.2.8}]}}}`, ready},
		"ingress without address":          {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}`, noAddress},
		"ingress of extensions, no status": {`{apiVersion: extensions/v1beta1, kind: Ingress}`, noAddress},
	})
}

func TestStorageAndConfiguration(t *testing.T) {
	exists := healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonExists}
	checkResults(t, map[string]resultCase{
		"bound claim": {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, healthscope.Result{State: healthscope.Ready}},
		"bound claim that waits for its file system to grow": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound, conditions: [{type: FileSystemResizePending, status: "True"}]}}`, healthscope.Result{State: healthscope.Ready},
		},
		"pending claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonClaimPending, Message: "no volume is bound to the claim yet"},
		},
		"lost claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonClaimLost, Message: "the volume of the claim is gone"},
		},
		"claim in a phase of the future": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Melting}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonUnknownPhase, Message: `the phase "Melting" is not known`, Warning: true},
		},
		"new claim":  {`{apiVersion: v1, kind: PersistentVolumeClaim}`, notObserved},
		"config map": {`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, exists},
		"secret":     {`{apiVersion: v1, kind: Secret, data: {a: Yg==}}`, exists},
	})
}

func TestKindsWithoutRule(t *testing.T) {
	exists := healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonExists}
	gadget := func(status string) string {
		return `{apiVersion: acme.example/v1, kind: Gadget, metadata: {generation: 1}, status: ` + status + `}`
	}
	checkResults(t, map[string]resultCase{
		"no status":                         {`{apiVersion: acme.example/v1, kind: Gadget}`, healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonNoStatus, Message: "the object has no status"}},
		"an empty status":                   {gadget(`{}`), healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonNoStatus, Message: "the object has no status"}},
		"a generation as text, for kstatus": {`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {generation: "2"}}`, exists},
		"an odd condition, for kstatus":     {`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, status: {conditions: [{type: Dangling, status: 5}]}}`, exists},
		"a namespace":                       {`{apiVersion: v1, kind: Namespace, status: {phase: Active}}`, exists},
		"a network policy":                  {`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}}}`, exists},
		"a network attachment":              {`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, spec: {config: "{}"}}`, exists},
		"ready":                             {gadget(`{conditions: [{type: Ready, status: "True"}]}`), healthscope.Result{State: healthscope.Ready}},
		"generations as fractions":          {`{apiVersion: acme.example/v1, kind: Gadget, metadata: {generation: "2"}, status: {observedGeneration: "2", conditions: [{type: Ready, status: "True"}]}}`, healthscope.Result{State: healthscope.Ready}},
		"not ready": {
			gadget(`{conditions: [{type: Ready, status: "False", reason: Broken, message: no oil}]}`),
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReadyFalse, Message: "Broken: no oil"},
		},
		"ready unknown": {
			gadget(`{conditions: [{type: Ready, status: Unknown, reason: Looking}]}`),
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReadyUnknown, Message: "Looking"},
		},
		"ready without a status": {
			gadget(`{conditions: [{type: Ready, reason: Forgotten}]}`),
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReadyUnknown, Message: "Forgotten"},
		},
		"stalled": {
			gadget(`{conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", reason: Jammed, message: gear 3}]}`),
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonStalled, Message: "Jammed: gear 3"},
		},
		"reconciling": {
			gadget(`{conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", reason: Turning}]}`),
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReconciling, Message: "Turning"},
		},
		"a definition that is established": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready},
		},
		"a definition whose names are taken": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict, message: taken}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonNamesNotAccepted, Message: "ListKindConflict: taken"},
		},
		"a definition that is being installed": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`,
			notObserved,
		},
		"a disruption budget": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2}}`,
			healthscope.Result{State: healthscope.Ready},
		},
	})
}
