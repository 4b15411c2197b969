package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

func TestSuspendedObjectsAreNotWaitedFor(t *testing.T) {
	suspended := healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonSuspended, Message: "it is suspended", Suspended: true}
	checkResults(t, map[string]resultCase{
		"Flux, suspended while ready": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {generation: 5}, spec: {suspend: true},
			  status: {observedGeneration: 4, conditions: [{type: Ready, status: "True", observedGeneration: 4}]}}`, suspended,
		},
		"Flux, suspended in the middle of its work": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {generation: 5}, spec: {suspend: true},
			  status: {observedGeneration: 4, conditions: [{type: Reconciling, status: "True"}, {type: Ready, status: "True", observedGeneration: 4}]}}`, suspended,
		},
		"Flux, suspended from the start": {
			`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {generation: 1}, spec: {suspend: true}, status: {observedGeneration: -1}}`, suspended,
		},
		"Flux, suspended after a run that failed": {
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {generation: 5}, spec: {suspend: true},
			  status: {observedGeneration: 4, conditions: [{type: Ready, status: "False", reason: UpgradeFailed, observedGeneration: 4}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReadyFalse, Message: "UpgradeFailed", Suspended: true},
		},
		"Flux, suspended and stalled": {
			`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {generation: 5}, spec: {suspend: true},
			  status: {observedGeneration: 4, conditions: [{type: Stalled, status: "True", reason: RetriesExceeded}, {type: Ready, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonStalled, Message: "RetriesExceeded", Suspended: true},
		},
		"Flux, resumed": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {generation: 5}, spec: {suspend: false},
			  status: {observedGeneration: 4, conditions: [{type: Ready, status: "True", observedGeneration: 4}]}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec"},
		},
		"Cluster API, paused": {
			`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {generation: 3}, spec: {paused: true},
			  status: {observedGeneration: 2, phase: Provisioned, conditions: [{type: Ready, status: "True"}]}}`, suspended,
		},
		"Strimzi, paused by an annotation": {
			`{apiVersion: kafka.strimzi.io/v1beta2, kind: Kafka, metadata: {generation: 3},
			  status: {observedGeneration: 2, conditions: [{type: ReconciliationPaused, status: "True"}]}}`, suspended,
		},
		"a Deployment that is paused has a controller that looks at it": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {paused: true, replicas: 1},
			  status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 1}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec",
				Serving: true, Suspended: true, Replicas: &healthscope.Replicas{Ready: 1, Desired: 1},
			},
		},
	})
}

func TestDeploymentsWithoutWantedReplicas(t *testing.T) {
	pending := func(desired int32) healthscope.Result {
		message := map[int32]string{1: "0 of 1 replicas are ready", 3: "0 of 3 replicas are ready"}[desired]
		return healthscope.Result{
			State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: message,
			Replicas: &healthscope.Replicas{Desired: desired},
		}
	}
	checkResults(t, map[string]resultCase{
		"none could be made": {
			`{apiVersion: apps/v1, kind: Deployment, status: {observedGeneration: 1, unavailableReplicas: 3, conditions: [{type: Available, status: "False"}]}}`, pending(3),
		},
		"the default of one": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}}, status: {observedGeneration: 1, conditions: [{type: Available, status: "False"}]}}`, pending(1),
		},
		"none is wanted, as far as the object shows": {
			`{apiVersion: apps/v1, kind: Deployment, status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: &healthscope.Replicas{}},
		},
	})
}

func TestKindsWithWordsOfTheirOwn(t *testing.T) {
	ready := healthscope.Result{State: healthscope.Ready}
	exists := healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonExists}
	failed := func(reason healthscope.Reason, message string) healthscope.Result {
		return healthscope.Result{State: healthscope.Failed, Reason: reason, Message: message}
	}
	running := healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonRunning, Serving: true, Message: "status.phase is Running"}
	lower := running
	lower.Message = "status.phase is running"
	working := func(message string) healthscope.Result {
		return healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonInProgress, Message: message}
	}
	checkResults(t, map[string]resultCase{
		"Crossplane, a configuration in use":  {`{apiVersion: helm.crossplane.io/v1beta1, kind: ProviderConfig, status: {users: 3}}`, exists},
		"an order that is done":               {`{apiVersion: acme.cert-manager.io/v1, kind: Order, status: {state: valid, url: "https://acme.example/1"}}`, ready},
		"an order to be finalised":            {`{apiVersion: acme.cert-manager.io/v1, kind: Order, status: {state: ready}}`, working("status.state is ready")},
		"an order that is not observed":       {`{apiVersion: acme.cert-manager.io/v1, kind: Order, status: {}}`, notObserved},
		"an order too late":                   {`{apiVersion: acme.cert-manager.io/v1, kind: Order, status: {state: expired}}`, failed(healthscope.ReasonPhaseFailed, "status.state is expired")},
		"a challenge that failed":             {`{apiVersion: acme.cert-manager.io/v1, kind: Challenge, status: {state: invalid, reason: no record}}`, failed(healthscope.ReasonPhaseFailed, "status.state is invalid: no record")},
		"a challenge with an error":           {`{apiVersion: acme.cert-manager.io/v1, kind: Challenge, status: {state: errored}}`, failed(healthscope.ReasonPhaseFailed, "status.state is errored")},
		"a challenge under way":               {`{apiVersion: acme.cert-manager.io/v1, kind: Challenge, status: {state: pending}}`, working("status.state is pending")},
		"a certificate that is denied":        {`{apiVersion: cert-manager.io/v1, kind: CertificateRequest, status: {conditions: [{type: Ready, status: "False"}, {type: Denied, status: "True", reason: policy}]}}`, failed(healthscope.ReasonFailed, "policy")},
		"a request that is wrong":             {`{apiVersion: cert-manager.io/v1, kind: CertificateRequest, status: {conditions: [{type: InvalidRequest, status: "True", reason: usages}]}}`, failed(healthscope.ReasonFailed, "usages")},
		"a signing request that is denied":    {`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Denied, status: "True", reason: nobody}]}}`, failed(healthscope.ReasonFailed, "nobody")},
		"a signing request that failed":       {`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Approved, status: "True"}, {type: Failed, status: "True", reason: signer}]}}`, failed(healthscope.ReasonFailed, "signer")},
		"another kind may be denied":          {`{apiVersion: certificates.k8s.io/v1, kind: ClusterTrustBundle, status: {conditions: [{type: Denied, status: "True"}]}}`, exists},
		"an analysis that went well":          {`{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, status: {phase: Successful}}`, ready},
		"an analysis without a result":        {`{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, status: {phase: Inconclusive}}`, failed(healthscope.ReasonPhaseFailed, "status.phase is Inconclusive")},
		"an analysis that runs":               {`{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, status: {phase: Running}}`, running},
		"a workflow that runs":                {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, conditions: [{type: PodRunning, status: "True"}]}}`, running},
		"a backup that runs":                  {`{apiVersion: postgresql.cnpg.io/v1, kind: Backup, status: {phase: running}}`, lower},
		"a backup that is done":               {`{apiVersion: postgresql.cnpg.io/v1, kind: Backup, status: {phase: completed}}`, ready},
		"a migration that runs":               {`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceMigration, status: {phase: Running}}`, running},
		"a machine that ended":                {`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, status: {phase: Succeeded, conditions: [{type: Ready, status: "False"}]}}`, healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonCompleted, Message: "the virtual machine has ended well"}},
		"a machine that is stopped by hand":   {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Manual}, status: {printableStatus: Stopped, conditions: [{type: Ready, status: "False"}]}}`, healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonSuspended, Message: "the virtual machine is switched off", Suspended: true}},
		"a machine that is starting by hand":  {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, spec: {runStrategy: Manual}, status: {printableStatus: Starting}}`, working("status.printableStatus is Starting")},
		"Knative, scaled to zero":             {`{apiVersion: autoscaling.internal.knative.dev/v1alpha1, kind: PodAutoscaler, status: {conditions: [{type: Active, status: "False", reason: NoTraffic}, {type: Ready, status: "False", reason: NoTraffic}]}}`, healthscope.Result{State: healthscope.Ready, Message: "it is scaled to zero, for lack of traffic"}},
		"Knative, does not get pods":          {`{apiVersion: autoscaling.internal.knative.dev/v1alpha1, kind: PodAutoscaler, status: {conditions: [{type: Active, status: "Unknown", reason: Queued}, {type: Ready, status: "Unknown", reason: Queued}]}}`, healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReadyUnknown, Message: "Queued"}},
		"a database that is made":             {`{apiVersion: postgresql.cnpg.io/v1, kind: Database, status: {applied: true, observedGeneration: 1}}`, ready},
		"a database that is refused":          {`{apiVersion: postgresql.cnpg.io/v1, kind: Database, status: {applied: false, message: no such role}}`, failed(healthscope.ReasonFailed, "it could not be applied: no such role")},
		"a database that is not observed":     {`{apiVersion: postgresql.cnpg.io/v1, kind: Database, spec: {name: shop}}`, notObserved},
		"a plan for backups":                  {`{apiVersion: postgresql.cnpg.io/v1, kind: ScheduledBackup, status: {lastScheduleTime: "2026-02-01T00:00:00Z"}}`, exists},
		"Strimzi, all pods":                   {`{apiVersion: core.strimzi.io/v1beta2, kind: StrimziPodSet, status: {pods: 3, readyPods: 3, currentPods: 3}}`, healthscope.Result{State: healthscope.Ready, Serving: true}},
		"Strimzi, a pod is missing":           {`{apiVersion: core.strimzi.io/v1beta2, kind: StrimziPodSet, status: {pods: 3, readyPods: 2, currentPods: 3}}`, healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "2 of 3 pods are ready"}},
		"Strimzi, a set that is not observed": {`{apiVersion: core.strimzi.io/v1beta2, kind: StrimziPodSet, spec: {pods: [{}]}}`, notObserved},
	})
}

// operatorCase is an entry of testdata/operators: a status that an operator writes, with the state that a person expects.
type operatorCase struct {
	Operator string          `json:"operator"`
	Source   string          `json:"source"`
	Case     string          `json:"case"`
	State    string          `json:"state"`
	Reason   string          `json:"reason"`
	Flags    []string        `json:"flags"`
	Object   json.RawMessage `json:"object"`
}

// readOperators reads the entries of testdata/operators.
func readOperators(t *testing.T) []operatorCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "operators", "operators.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []operatorCase
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestOperators asserts that one good condition or phase does not override the rest of the status.
func TestOperators(t *testing.T) {
	cases := readOperators(t)
	operators := map[string]bool{}
	sources := []string{"recording", "test data", "documentation", "API types", "issues"}
	for _, tc := range cases {
		operators[tc.Operator] = true
		t.Run(tc.Operator+"/"+tc.Case, func(t *testing.T) {
			if !slices.Contains(sources, tc.Source) {
				t.Errorf("source is %q, which is none of %q", tc.Source, sources)
			}
			var object map[string]any
			if err := k8sjson.Unmarshal(tc.Object, &object); err != nil {
				t.Fatal(err)
			}
			got, rule := rules.Explain(&unstructured.Unstructured{Object: object}, rules.Options{})
			if string(got.State) != tc.State || tc.Reason != "" && string(got.Reason) != tc.Reason {
				t.Errorf("got %s %s by %s: %s; want %s %s", got.State, got.Reason, rule, got.Message, tc.State, tc.Reason)
			}
			if tc.Flags != nil && !slices.Equal(flagsOf(got), tc.Flags) {
				t.Errorf("flags are %q, want %q", flagsOf(got), tc.Flags)
			}
			if got.State != healthscope.Ready && got.Message == "" {
				t.Error("the message is empty")
			}
		})
	}
	if len(operators) < 30 || len(cases) < 60 {
		t.Errorf("%d statuses of %d operators were read, want at least 60 of 30", len(cases), len(operators))
	}
}
