package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// These objects may be owners of others.
const (
	shopDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store}, spec: {selector: {matchLabels: {app: shop}}}}`
	shopReplicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store, labels: {app: shop, hash: 6b7f}}, spec: {selector: {matchLabels: {app: shop, hash: 6b7f}}}}`
	shopAPI        = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop-api, namespace: store}, spec: {selector: {matchLabels: {app: shop}, matchExpressions: [{key: part, operator: In, values: [api]}]}}}`
	bareDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store}, spec: {selector: null}}`
)

func TestOwners(t *testing.T) {
	cases := map[string]struct {
		owned  string
		others []string
		want   string
	}{
		"the ownerReference leads to an object of the bundle": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, uid: p, labels: {app: db}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, controller: true}]}}`,
			[]string{shopDeployment, shopReplicaSet}, "ReplicaSet/shop-6b7f",
		},
		"it leads to a ReplicaSet that is not there, the Deployment's selector matches": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, uid: p, labels: {app: shop}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: other-1, controller: true}]}}`,
			[]string{shopDeployment}, "Deployment/shop",
		},
		"it leads to a ReplicaSet that is not there, and is named after the Deployment": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-77-kx2wz, namespace: store, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-77, controller: true}]}}`,
			[]string{bareDeployment}, "Deployment/shop",
		},
		"it leads to a ReplicaSet that is not there, nor is its Deployment": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-77-kx2wz, namespace: store, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-77, controller: true}]}}`,
			[]string{`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: shop, namespace: store}}`}, "ReplicaSet/shop-77",
		},
		"it leads to something else that is not there": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-77-kx2wz, namespace: store, uid: p, labels: {app: shop}, ownerReferences: [{apiVersion: acme.example/v1, kind: Gadget, name: g, controller: true}]}}`,
			[]string{shopDeployment}, "Gadget/g",
		},
		"a pod with whole metadata and no ownerReference has no owner": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-kx2wz, namespace: store, uid: p, labels: {app: shop}}}`,
			[]string{shopDeployment, shopReplicaSet}, "",
		},
		"pruned: the selector matches": {
			`{apiVersion: v1, kind: Pod, metadata: {name: anything, namespace: store, labels: {app: shop, part: web}}}`,
			[]string{shopDeployment, shopAPI}, "Deployment/shop",
		},
		"pruned: the most specific selector wins": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-kx2wz, namespace: store, labels: {app: shop, part: api}}}`,
			[]string{shopDeployment, shopAPI}, "Deployment/shop-api",
		},
		"pruned: the ReplicaSet is more specific than its Deployment": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, labels: {app: shop, hash: 6b7f}}}`,
			[]string{shopDeployment, shopReplicaSet}, "ReplicaSet/shop-6b7f",
		},
		"pruned: of equal selectors the better name wins": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-green-77-kx2wz, namespace: store, labels: {app: shop}}}`,
			[]string{shopDeployment, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop-green, namespace: store}, spec: {selector: {matchLabels: {app: shop}}}}`}, "Deployment/shop-green",
		},
		"pruned: a selector in another namespace does not match": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: back, labels: {app: shop}}}`, []string{shopDeployment}, "",
		},
		"pruned: a selector that selects all is none": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, labels: {app: shop}}}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: all, namespace: store}, spec: {selector: {}}}`}, "",
		},
		"pruned: selectors that cannot be read are none": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, labels: {app: shop}}}`,
			[]string{
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: store}, spec: {selector: {matchLabels: 5}}}`,
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: store}, spec: {selector: {matchExpressions: [{key: app, operator: Resembles}]}}}`,
			}, "",
		},
		"pruned: a Service's selector makes no owner": {
			`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store, labels: {app: shop}}}`,
			[]string{`{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store}, spec: {selector: {app: shop}}}`}, "",
		},
		"pruned: a ReplicaSet and its Deployment": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x, namespace: store, labels: {app: shop}}}`, []string{shopDeployment}, "Deployment/shop",
		},
		"pruned: a Deployment has no owner": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop-77, namespace: store, labels: {app: shop}}}`, []string{shopDeployment}, "",
		},
		"by name: pod of a ReplicaSet": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-kx2wz, namespace: store}}`, []string{bareDeployment, shopReplicaSet}, "ReplicaSet/shop-6b7f",
		},
		"by name: pod of a Deployment": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-kx2wz, namespace: store}}`, []string{bareDeployment}, "Deployment/shop",
		},
		"by name: ReplicaSet of a Deployment": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store}}`, []string{bareDeployment}, "Deployment/shop",
		},
		"by name: pod of a StatefulSet": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-12, namespace: store}}`,
			[]string{bareDeployment, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: shop, namespace: store}}`}, "StatefulSet/shop",
		},
		"by name: pod of a DaemonSet": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-kx2wz, namespace: store}}`,
			[]string{bareDeployment, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: shop, namespace: store}}`}, "DaemonSet/shop",
		},
		"by name: the longest name wins": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-api-kx2wz, namespace: store}}`,
			[]string{bareDeployment, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: shop-api, namespace: store}}`}, "DaemonSet/shop-api",
		},
		"by name: pod of a Job": {
			`{apiVersion: v1, kind: Pod, metadata: {name: import-kx2wz, namespace: store}}`, []string{`{apiVersion: batch/v1, kind: Job, metadata: {name: import, namespace: store}}`}, "Job/import",
		},
		"by name: pod of an indexed Job": {
			`{apiVersion: v1, kind: Pod, metadata: {name: import-3-kx2wz, namespace: store}}`, []string{`{apiVersion: batch/v1, kind: Job, metadata: {name: import, namespace: store}}`}, "Job/import",
		},
		"by name: Job of a CronJob": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: nightly-29512800, namespace: store}}`, []string{`{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: store}}`}, "CronJob/nightly",
		},
		"by name: a word that no controller makes": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-debug-session-1, namespace: store}}`, []string{bareDeployment}, "",
		},
		"by name: a pod of another namespace": {
			`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-kx2wz, namespace: back}}`, []string{bareDeployment}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := bundle.Build(parseAll(t, append(tc.others, tc.owned)...), nil, noon, bundle.Options{})
			owned := parse(t, tc.owned)
			var got string
			for _, r := range status.Resources {
				if r.Kind == owned.GetKind() && r.Name == owned.GetName() && r.Owner != nil {
					got = r.Owner.Kind + "/" + r.Owner.Name
				}
			}
			if got != tc.want {
				t.Errorf("the owner is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestApp(t *testing.T) {
	cases := map[string]struct {
		label    string
		selector map[string]string
		name     string
		want     string
	}{
		"label":                        {"17-sink", nil, "other-name", "sink"},
		"label, with dashes":           {"17-fw-sink", nil, "x", "fw-sink"},
		"label without dash":           {"sink", nil, "x", "sink"},
		"label with nothing behind":    {"17-", nil, "x", "17-"},
		"selector":                     {"", map[string]string{"a": "9-wrong", k8spluginv1alpha1.LabelDeploymentID: "17-sink"}, "x", "sink"},
		"selector with another key":    {"", map[string]string{"k8splugin.io/rb-instance-id": "brave-lion"}, "x", "lion"},
		"selector with several others": {"", map[string]string{"b": "1-second", "a": "1-first", "": ""}, "x", "first"},
		"name":                         {"", nil, "17-sink", "sink"},
		"nothing":                      {"", map[string]string{}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := withStatus(t, `{}`)
			b.Name = tc.name
			if tc.label != "" {
				b.Labels = map[string]string{k8spluginv1alpha1.LabelDeploymentID: tc.label}
			}
			if tc.selector != nil {
				b.Spec.Selector = selectorItem(tc.selector)
			}
			if diff := cmp.Diff(tc.want, bundle.App(b)); diff != "" {
				t.Errorf("app (-want +got):\n%s", diff)
			}
		})
	}
}
