package bundle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// lines returns a line for each result: what it is of, its state, reason and owner.
func lines(results []healthscope.Result) []string {
	text := make([]string, 0, len(results))
	for _, r := range results {
		line := fmt.Sprintf("%s %s %s/%s %s %s", strings.TrimPrefix(r.Group+"/"+r.Version, "/"), r.Kind, r.Namespace, r.Name, r.State, r.Reason)
		if r.Owner != nil {
			line += " of " + r.Owner.Kind + "/" + r.Owner.Name
		}
		text = append(text, line)
	}
	return text
}

// oldBundle is a bundle as ONAP's monitor writes it. All lists exist, and empty ones are null. metadata is complete, and spec
// has only few fields.
const oldBundle = `
ready: false
resourceCount: 4
podStatuses:
- {kind: Pod, apiVersion: v1, metadata: {name: shop-7c9d-kx2wz, generateName: shop-7c9d-, namespace: store, uid: p-1, resourceVersion: "41", labels: {app: shop}, managedFields: [{manager: kcm}],
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-7c9d, uid: r-1, controller: true, blockOwnerDeletion: true}]},
   spec: {containers: null}, status: {phase: Running, conditions: [{type: Ready, status: "True", lastProbeTime: null}], containerStatuses: [{name: web, ready: true, restartCount: 0, state: {running: {}}, lastState: {}}]}}
serviceStatuses:
- {kind: Service, apiVersion: v1, metadata: {name: shop, namespace: store, uid: s-1}, spec: {}, status: {loadBalancer: {}}}
configMapStatuses: null
deploymentStatuses:
- {kind: Deployment, apiVersion: apps/v1, metadata: {name: shop, namespace: store, uid: d-1, generation: 1}, spec: {selector: null, template: {metadata: {creationTimestamp: null}, spec: {containers: null}}, strategy: {}},
   status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}
secretStatuses:
- {metadata: {name: shop, namespace: store, uid: x-1}}
daemonSetStatuses: null
ingressStatuses:
- {kind: Ingress, apiVersion: extensions/v1beta1, metadata: {name: shop, namespace: store, uid: i-1}, spec: {}, status: {loadBalancer: {ingress: [{ip: 192.0.2.4}]}}}
jobStatuses: null
statefulSetStatuses: null
csrStatuses:
- {kind: CertificateSigningRequest, apiVersion: certificates.k8s.io/v1beta1, metadata: {name: shop}, status: {certificate: LS0t}}
`

// newBundle is a bundle as EMCO's API server stores it. There are no empty lists. metadata is pruned to names, labels and
// annotations, spec is kept, and other kinds are in base64.
const newBundle = `
ready: false
resourceCount: 0
podStatuses:
- {apiVersion: v1, kind: Pod, metadata: {annotations: {a: b}, labels: {app: shop, tier: web, pod-template-hash: 7c9d}, name: shop-7c9d-kx2wz, namespace: store},
   spec: {containers: [{name: web, image: "shop:1"}]}, status: {phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {labels: {app: db}, name: db-0, namespace: store}, spec: {containers: [{name: db}]}, status: {phase: Running, containerStatuses: [{name: db, ready: true}]}}
deploymentStatuses:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store}, spec: {replicas: 1, progressDeadlineSeconds: 600, selector: {matchLabels: {app: shop}}},
   status: {observedGeneration: 4, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1}}
statefulSetStatuses:
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: store}, spec: {replicas: 1, selector: {matchLabels: {app: db}}}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}
resourceStatuses:
- {group: rbac.authorization.k8s.io, version: v1, kind: Role, name: reader, namespace: store, res: eyJhcGlWZXJzaW9uIjoicmJhYy5hdXRob3JpemF0aW9uLms4cy5pby92MSIsImtpbmQiOiJSb2xlIiwibWV0YWRhdGEiOnsibmFtZSI6InJlYWRlciIsIm5hbWVzcGFjZSI6InN0b3JlIiwidWlkIjoibyJ9LCJydWxlcyI6W119}
`

func TestReadOtherMonitors(t *testing.T) {
	cases := map[string]struct {
		status string
		want   []string
	}{
		"metadata whole, spec cut off": {oldBundle, []string{
			"v1 Pod store/shop-7c9d-kx2wz Ready  of Deployment/shop", "v1 Secret store/shop Ready Exists", "v1 Service store/shop Ready ", "apps/v1 Deployment store/shop Ready ",
			"certificates.k8s.io/v1beta1 CertificateSigningRequest /shop Ready Exists", "extensions/v1beta1 Ingress store/shop Ready ",
		}},
		"metadata pruned, spec kept": {newBundle, []string{
			"v1 Pod store/db-0 Ready  of StatefulSet/db", "v1 Pod store/shop-7c9d-kx2wz Failed CrashLoopBackOff of Deployment/shop",
			"apps/v1 Deployment store/shop Pending ReplicasNotReady", "apps/v1 StatefulSet store/db Ready ", "rbac.authorization.k8s.io/v1 Role store/reader Ready Exists",
		}},
		"the entry, and not the object, has kind and names": {`{resourceStatuses: [{group: apps, version: v1, kind: ReplicaSet, name: web, namespace: store, res: ` +
			base64Of(`{"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 1}}`) + `}]}`, []string{"apps/v1 ReplicaSet store/web Pending ReplicasNotReady"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := bundle.Read("north+edge", withStatus(tc.status))
			if diff := cmp.Diff(tc.want, lines(got.Results)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if !got.Observed || got.Truncated || len(got.Malformed) > 0 {
				t.Errorf("observed %v, truncated %v, malformed %q", got.Observed, got.Truncated, got.Malformed)
			}
			for _, r := range got.Results {
				if r.Cluster != "north+edge" || !r.Since.IsZero() {
					t.Errorf("%s has cluster %q and since %v", r.Key, r.Cluster, r.Since)
				}
			}
		})
	}
}

// TestReadOwnBundle asserts what a reader gets of an entry with all its fields.
func TestReadOwnBundle(t *testing.T) {
	got := read(roundTrip(bundle.Build(shop(), nil, noon, bundle.Options{AllowedLabels: []string{"team"}}))).Results
	deployment := healthscope.Result{
		Key: healthscope.Key{Cluster: "edge", Group: "apps", Kind: "Deployment", Namespace: "store", Name: "shop"}, Version: "v1", UID: "d-1",
		State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "1 of 2 replicas are ready",
		Since: noon.Truncate(time.Second), Labels: map[string]string{"team": "blue"}, Replicas: &healthscope.Replicas{Ready: 1, Desired: 2}, ProgressDeadline: 300 * time.Second,
		Progress: &healthscope.Progress{Generation: 2, Updated: 2, Ready: 1, Available: 1},
	}
	if diff := cmp.Diff(deployment, got[4]); diff != "" {
		t.Errorf("deployment (-want +got):\n%s", diff)
	}
	if want := (healthscope.Owner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"}); *got[1].Owner != want || !got[1].Serving {
		t.Errorf("pod %+v, want owner %+v", got[1], want)
	}
}

func TestMalformedPartsAreNamedAndTheRestCounts(t *testing.T) {
	service := `{apiVersion: v1, kind: Service, metadata: {name: good}}`
	cases := map[string]struct {
		status    string
		malformed []string
		results   int
	}{
		"a list that is a string":  {`{podStatuses: x, serviceStatuses: [` + service + `]}`, []string{"podStatuses"}, 1},
		"a list that is an object": {`{podStatuses: {}, serviceStatuses: [` + service + `]}`, []string{"podStatuses"}, 1},
		"entries that are none": {
			`{serviceStatuses: [text, 7, null, [], {}, ` + service + `, {metadata: text}, {metadata: {name: 5}}, {kind: 5, metadata: {name: x}}]}`,
			[]string{"serviceStatuses[0]", "serviceStatuses[1]", "serviceStatuses[2]", "serviceStatuses[3]", "serviceStatuses[4]", "serviceStatuses[6]", "serviceStatuses[7]", "serviceStatuses[8]"}, 1,
		},
		"other kinds": {
			`{resourceStatuses: [text, {name: x, kind: Role}, {name: x, kind: Role, res: "%%%"}, {name: x, kind: Role, res: bnVsbA==}, {name: x, kind: Role, res: e30=}, {name: x, res: e30=}, {kind: Role, res: e30=}, {name: 7, kind: Role, res: e30=}]}`,
			[]string{"resourceStatuses[0]", "resourceStatuses[1]", "resourceStatuses[2]", "resourceStatuses[3]", "resourceStatuses[5]", "resourceStatuses[6]", "resourceStatuses[7]"}, 1,
		},
		"fields of the wrong type": {`{ready: perhaps, resourceCount: many, serviceStatuses: [` + service + `]}`, []string{"ready", "resourceCount"}, 1},
		"entries of our own": {
			`{summary: {state: Ready}, resources: [{kind: Pod, name: a, state: Ready}, {kind: Pod, name: b, state: Dancing}, {name: c, state: Ready}, {kind: Pod, state: Ready}, {kind: Pod, name: d}]}`,
			[]string{"resources[1]", "resources[2]", "resources[3]", "resources[4]"}, 1,
		},
		"entries of our own of the wrong type":                   {`{summary: {state: Ready}, resources: [5, {kind: Pod, name: a, state: Ready}]}`, []string{"resources"}, 1},
		"objects that cannot be judged are no malformed entries": {`{podStatuses: [{metadata: {name: p}, status: 7}]}`, nil, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := bundle.Read("edge", withStatus(tc.status))
			if diff := cmp.Diff(tc.malformed, got.Malformed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("malformed (-want +got):\n%s", diff)
			}
			if len(got.Results) != tc.results {
				t.Errorf("results %q", lines(got.Results))
			}
		})
	}
}

func TestMalformedIsBounded(t *testing.T) {
	got := read(k8spluginv1alpha1.ResourceBundleStateStatus{PodStatuses: []byte("[0" + strings.Repeat(",0", 5000) + "]")})
	if len(got.Malformed) != 100 || len(got.Results) != 0 {
		t.Errorf("%d places are named, %d results", len(got.Malformed), len(got.Results))
	}
}

// TestABundleMadeToCostTime reads a bundle with many selectors and many pods. To compare each selector with each pod would take
// seconds for a bundle of valid size, so the number of comparisons is limited.
func TestABundleMadeToCostTime(t *testing.T) {
	const n = 1200
	var pods, deployments strings.Builder
	for i := range n {
		fmt.Fprintf(&pods, `,{"metadata":{"name":"p%04d","labels":{"a":"b"}}}`, i)
		fmt.Fprintf(&deployments, `,{"metadata":{"name":"d%04d"},"spec":{"selector":{"matchLabels":{"a":"d%04d"}}}}`, i, i)
	}
	contents := read(k8spluginv1alpha1.ResourceBundleStateStatus{
		PodStatuses:         []byte(`[{"metadata":{"name":"first-0","labels":{"a":"d0007"}}},{"metadata":{"name":"z-0","labels":{"a":"d0007"}}}` + pods.String() + `]`),
		DeploymentStatuses:  []byte("[" + deployments.String()[1:] + "]"),
		StatefulSetStatuses: []byte(`[{"metadata":{"name":"first"}},{"metadata":{"name":"z"}}]`),
	})
	owners := map[string]string{}
	for _, r := range contents.Results {
		if r.Owner != nil {
			owners[r.Name] = r.Owner.Kind + "/" + r.Owner.Name
		}
	}
	want := map[string]string{"first-0": "Deployment/d0007", "z-0": "StatefulSet/z"}
	if diff := cmp.Diff(want, owners); diff != "" {
		t.Errorf("owners, by selector at first and by name in the end (-want +got):\n%s", diff)
	}
}

func TestTrimKeepsWhatIsNeeded(t *testing.T) {
	b := withStatus(newBundle)
	b.Labels = map[string]string{k8spluginv1alpha1.LabelDeploymentID: "17-shop"}
	b.Annotations = map[string]string{"a": "b"}
	b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "monitor"}}
	b.UID, b.ResourceVersion, b.Generation, b.CreationTimestamp = "u", "9", 3, metav1.NewTime(noon)
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: b.Labels}
	meta := metav1.ObjectMeta{
		Name: "17-shop", Namespace: "store", Labels: b.Labels, UID: "u", ResourceVersion: "9", Generation: 3, CreationTimestamp: metav1.NewTime(noon),
	}
	bundle.Trim(b, nil)
	if diff := cmp.Diff(meta, b.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if b.Spec.Selector == nil || len(b.Status.Resources) != 5 {
		t.Errorf("selector %v, %d resources", b.Spec.Selector, len(b.Status.Resources))
	}
	for name, list := range b.Status.Lists() {
		if len(*list) > len(`[]`) {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestWhoFilledABundle asserts that a reader knows, before and after Trim, whether a monitor has filled a bundle, and whether it is
// HealthScope's. Time limits and counts depend on it.
func TestWhoFilledABundle(t *testing.T) {
	cases := map[string]struct {
		status        string
		own, observed bool
		results       int
	}{
		"none, as it was created":                    {`{}`, false, false, 0},
		"none, as EMCO creates it":                   {`{ready: false, resourceCount: 0}`, false, false, 0},
		"none, as ONAP creates it":                   {`{ready: false, resourceCount: 0, podStatuses: null, serviceStatuses: null, csrStatuses: null}`, false, false, 0},
		"HealthScope's monitor":                      {`{summary: {state: Ready, total: 1, ready: 1}, resourceCount: 1, resources: [{version: v1, kind: Service, name: shop, state: Ready}]}`, true, true, 1},
		"HealthScope's monitor that has found none":  {`{summary: {state: Ready}, resourceCount: 0}`, true, true, 0},
		"another monitor":                            {`{serviceStatuses: [{metadata: {name: shop}}]}`, false, true, 1},
		"another monitor that has found none":        {`{ready: false, resourceCount: 0, podStatuses: [], serviceStatuses: []}`, false, true, 0},
		"another monitor that writes nonsense":       {`{serviceStatuses: 5}`, false, true, 0},
		"another monitor, beside a summary it broke": {`{serviceStatuses: [{metadata: {name: shop}}], summary: 5, resources: [{version: v1, kind: Pod, name: old, state: Ready}]}`, false, true, 1},
		"lists left out beside a broken summary":     {`{summary: 5, resources: [{version: v1, kind: Pod, name: web, state: Ready}]}`, false, true, 1},
		"a status that is a list":                    {`[]`, false, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := withStatus(tc.status)
			before := bundle.Read("edge", b)
			if before.Own != tc.own || before.Observed != tc.observed || len(before.Results) != tc.results {
				t.Errorf("own %t, observed %t, %d results; want %t, %t, %d", before.Own, before.Observed, len(before.Results), tc.own, tc.observed, tc.results)
			}
			for range 2 { // An informer may call its transform twice.
				bundle.Trim(b, nil)
				if diff := cmp.Diff(before, bundle.Read("edge", b), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("contents before and after Trim (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// TestForeignTextsAreClean asserts that contents have no characters that control a terminal, and no time that cannot be written,
// whatever a member writes into a bundle.
func TestForeignTextsAreClean(t *testing.T) {
	const evil = "a\x1b[2J\u009b\u202eb\r\nc\u2028d"
	far := metav1.NewTime(time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC))
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": evil, "namespace": evil},
		"status": map[string]any{"phase": "Failed", "reason": evil, "message": evil},
	}
	for name, status := range map[string]k8spluginv1alpha1.ResourceBundleStateStatus{
		"lists": {PodStatuses: []byte(encode([]any{pod}))},
		"entries": {
			Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1, Failed: 1},
			Resources: []k8spluginv1alpha1.ResourceHealth{{
				Group: evil, Version: evil, Kind: evil, Namespace: evil, Name: evil, UID: evil, State: "Failed", Reason: evil, Message: evil, Since: &far,
				Owner: &k8spluginv1alpha1.ResourceOwner{Group: evil, Kind: evil, Name: evil}, Labels: map[string]string{evil: evil},
			}},
			Malformed: []string{evil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			contents := read(status)
			if len(contents.Results) != 1 || !contents.Results[0].Since.IsZero() {
				t.Errorf("results %+v, want one without since", contents.Results)
			}
			text := encode(contents)
			for _, unsafe := range []string{`\u001b`, "\u009b", "\u202e", `\r`, `\n`, `\u2028`} {
				if strings.Contains(text, unsafe) {
					t.Errorf("%s contains %q", text, unsafe)
				}
			}
		})
	}
}
