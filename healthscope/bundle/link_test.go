package bundle_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

// apiVersions are those of the kinds that are not in apps/v1.
var apiVersions = map[string]string{"Pod": "v1", "Service": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}

// pruned returns an object as EMCO's API server keeps it, without uid and ownerReferences, but with further fields of its metadata
// and with the given fields of its spec.
func pruned(kind, name, metadata, spec string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: store, %s}, spec: {%s}}`, cmp.Or(apiVersions[kind], "apps/v1"), kind, name, metadata, spec)
}

// inBack returns an object in the namespace back.
func inBack(object string) string {
	return strings.Replace(object, "namespace: store", "namespace: back", 1)
}

// owned returns a pod with whole metadata and an ownerReference.
func owned(name, labels, apiVersion, kind, owner string) string {
	return pruned("Pod", name, fmt.Sprintf(`uid: p, labels: {%s}, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, controller: true}]`, labels, apiVersion, kind, owner), "")
}

func TestOwners(t *testing.T) {
	var (
		deployment = pruned("Deployment", "shop", "", "selector: {matchLabels: {app: shop}}")
		bare       = pruned("Deployment", "shop", "", "selector: null")
		api        = pruned("Deployment", "shop-api", "", "selector: {matchLabels: {app: shop}, matchExpressions: [{key: part, operator: In, values: [api]}]}")
		green      = pruned("Deployment", "shop-green", "", "selector: {matchLabels: {app: shop}}")
		replicaSet = pruned("ReplicaSet", "shop-6b7f", "labels: {app: shop, hash: 6b7f}", "selector: {matchLabels: {app: shop, hash: 6b7f}}")
		set        = pruned("StatefulSet", "shop", "", "")
		job        = pruned("Job", "import", "", "")
	)
	cases := map[string]struct {
		owned  string
		others []string
		want   string
	}{
		"the ownerReference leads to an object of the bundle":                           {owned("x", "app: db", "apps/v1", "ReplicaSet", "shop-6b7f"), []string{deployment, replicaSet}, "ReplicaSet/shop-6b7f"},
		"it leads to a ReplicaSet that is not there, the Deployment's selector matches": {owned("x", "app: shop", "apps/v1", "ReplicaSet", "other-1"), []string{deployment}, "Deployment/shop"},
		"it leads to a ReplicaSet that is not there, and is named after the Deployment": {owned("shop-77-kx2wz", "", "apps/v1", "ReplicaSet", "shop-77"), []string{bare}, "Deployment/shop"},
		"it leads to a ReplicaSet that is not there, nor is its Deployment":             {owned("shop-77-kx2wz", "", "apps/v1", "ReplicaSet", "shop-77"), []string{set}, "ReplicaSet/shop-77"},
		"it leads to something else that is not there":                                  {owned("shop-77-kx2wz", "app: shop", "acme.example/v1", "Gadget", "g"), []string{deployment}, "Gadget/g"},
		"a pod with whole metadata and no ownerReference has no owner":                  {pruned("Pod", "shop-6b7f-kx2wz", "uid: p, labels: {app: shop}", ""), []string{deployment, replicaSet}, ""},

		"by selector: it matches":                                     {pruned("Pod", "anything", "labels: {app: shop, part: web}", ""), []string{deployment, api}, "Deployment/shop"},
		"by selector: the most specific one wins":                     {pruned("Pod", "shop-kx2wz", "labels: {app: shop, part: api}", ""), []string{deployment, api}, "Deployment/shop-api"},
		"by selector: the ReplicaSet's is more specific":              {pruned("Pod", "x", "labels: {app: shop, hash: 6b7f}", ""), []string{deployment, replicaSet}, "ReplicaSet/shop-6b7f"},
		"by selector: of equal ones the better name wins":             {pruned("Pod", "shop-green-77-kx2wz", "labels: {app: shop}", ""), []string{deployment, green}, "Deployment/shop-green"},
		"by selector: one in another namespace does not match":        {inBack(pruned("Pod", "x", "labels: {app: shop}", "")), []string{deployment}, ""},
		"by selector: one that selects all is none":                   {pruned("Pod", "x", "labels: {app: shop}", ""), []string{pruned("Deployment", "all", "", "selector: {}")}, ""},
		"by selector: one that is no selector is none":                {pruned("Pod", "x", "labels: {app: shop}", ""), []string{pruned("Deployment", "a", "", "selector: {matchLabels: 5}")}, ""},
		"by selector: one with an operator that is not known is none": {pruned("Pod", "x", "labels: {app: shop}", ""), []string{pruned("Deployment", "a", "", "selector: {matchExpressions: [{key: app, operator: Resembles}]}")}, ""},
		"by selector: that of a Service makes no owner":               {pruned("Pod", "x", "labels: {app: shop}", ""), []string{pruned("Service", "shop", "", "selector: {app: shop}")}, ""},
		"by selector: that of another API's Deployment is none":       {pruned("Pod", "x", "labels: {app: shop}", ""), []string{strings.Replace(deployment, "apps/v1", "acme.example/v1", 1)}, ""},
		"by selector: a ReplicaSet and its Deployment":                {pruned("ReplicaSet", "x", "labels: {app: shop}", ""), []string{deployment}, "Deployment/shop"},
		"by selector: a Deployment has no owner":                      {pruned("Deployment", "shop-77", "labels: {app: shop}", ""), []string{deployment}, ""},

		"by name: pod of a ReplicaSet":                      {pruned("Pod", "shop-6b7f-kx2wz", "", ""), []string{bare, replicaSet}, "ReplicaSet/shop-6b7f"},
		"by name: pod of a Deployment":                      {pruned("Pod", "shop-6b7f-kx2wz", "", ""), []string{bare}, "Deployment/shop"},
		"by name: ReplicaSet of a Deployment":               {pruned("ReplicaSet", "shop-6b7f", "", ""), []string{bare}, "Deployment/shop"},
		"by name: pod of a StatefulSet":                     {pruned("Pod", "shop-12", "", ""), []string{bare, set}, "StatefulSet/shop"},
		"by name: pod of a DaemonSet":                       {pruned("Pod", "shop-kx2wz", "", ""), []string{bare, pruned("DaemonSet", "shop", "", "")}, "DaemonSet/shop"},
		"by name: the longest name wins":                    {pruned("Pod", "shop-api-kx2wz", "", ""), []string{bare, pruned("DaemonSet", "shop-api", "", "")}, "DaemonSet/shop-api"},
		"by name: pod of a Job":                             {pruned("Pod", "import-kx2wz", "", ""), []string{job}, "Job/import"},
		"by name: pod of an indexed Job":                    {pruned("Pod", "import-3-kx2wz", "", ""), []string{job}, "Job/import"},
		"by name: Job of a CronJob":                         {pruned("Job", "nightly-29512800", "", ""), []string{pruned("CronJob", "nightly", "", "")}, "CronJob/nightly"},
		"by name: not of a DaemonSet, with six characters":  {pruned("Pod", "shop-canary", "", ""), []string{pruned("DaemonSet", "shop", "", "")}, ""},
		"by name: not of a DaemonSet, with a second part":   {pruned("Pod", "shop-kx2wz-aaaaa", "", ""), []string{pruned("DaemonSet", "shop", "", "")}, ""},
		"by name: not of a StatefulSet, with letters":       {pruned("Pod", "shop-a", "", ""), []string{set}, ""},
		"by name: not of a StatefulSet, with a second part": {pruned("Pod", "shop-1-2", "", ""), []string{set}, ""},
		"by name: not of a Job, with a word as its index":   {pruned("Pod", "import-x-kx2wz", "", ""), []string{job}, ""},
		"by name: not of a Job, with a short random part":   {pruned("Pod", "import-3-kx", "", ""), []string{job}, ""},
		"by name: not of a Deployment, with one part":       {pruned("Pod", "shop-kx2wz", "", ""), []string{bare}, ""},
		"by name: not of a Deployment, with a long hash":    {pruned("Pod", "shop-aaaaaaaaaaaaaaaaa-kx2wz", "", ""), []string{bare}, ""},
		"by name: not of a Deployment, with capitals":       {pruned("Pod", "shop-6B7F-kx2wz", "", ""), []string{bare}, ""},
		"by name: a word that no controller makes":          {pruned("Pod", "shop-debug-session-1", "", ""), []string{bare}, ""},
		"by name: not of one in another namespace":          {inBack(pruned("Pod", "shop-6b7f-kx2wz", "", "")), []string{bare}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := bundle.Build(parseAll(append(tc.others, tc.owned)...), nil, noon, bundle.Options{})
			object, got := parse(tc.owned), ""
			if owner := entryNamed(status, object.GetKind(), object.GetName()).Owner; owner != nil {
				got = owner.Kind + "/" + owner.Name
			}
			if got != tc.want {
				t.Errorf("the owner is %q, want %q", got, tc.want)
			}
		})
	}
}
