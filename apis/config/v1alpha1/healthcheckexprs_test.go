package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

func TestHealthCheckExprsAreValidated(t *testing.T) {
	const rest = `, current: "true"}`
	cases := map[string]struct {
		file string
		// want lists the fields with errors, once for each error.
		want []string
	}{
		"as in Flux":                  {`{apiVersion: cert-manager.io/v1, kind: Certificate, inProgress: a, failed: b, current: c}`, nil},
		"all that can be said":        {`{name: tls.v1, apiVersion: v1, kind: Pod, match: {name: "system:x", namespace: store, labelSelector: "a=b,c in (d,e),!f"}` + rest, nil},
		"an expression that is wrong": {`{apiVersion: v1, kind: Pod, current: "1 +"}`, nil},
		"nothing":                     {`{}`, []string{"healthCheckExprs[0].apiVersion", "healthCheckExprs[0].kind", "healthCheckExprs[0].current"}},
		"a group without version":     {`{apiVersion: cert-manager.io/, kind: Certificate` + rest, []string{"healthCheckExprs[0].apiVersion"}},
		"two slashes":                 {`{apiVersion: a/b/c, kind: Certificate` + rest, []string{"healthCheckExprs[0].apiVersion"}},
		"every group":                 {`{apiVersion: "*/v1", kind: Certificate` + rest, []string{"healthCheckExprs[0].apiVersion"}},
		"every kind":                  {`{apiVersion: v1, kind: "*"` + rest, []string{"healthCheckExprs[0].kind"}},
		"every name":                  {`{apiVersion: v1, kind: Pod, match: {name: "web-*", namespace: "*"}` + rest, []string{"healthCheckExprs[0].match.name", "healthCheckExprs[0].match.namespace"}},
		"a selector that is none":     {`{apiVersion: v1, kind: Pod, match: {labelSelector: "a=b=c"}` + rest, []string{"healthCheckExprs[0].match.labelSelector"}},
		"a name that is none":         {`{name: my rule, apiVersion: v1, kind: Pod` + rest, []string{"healthCheckExprs[0].name"}},
		"one kind twice":              {`{apiVersion: g/v1, kind: A` + rest + `, {apiVersion: g/v2, kind: A` + rest, []string{"healthCheckExprs[1].name"}},
		"one kind twice, with names":  {`{name: a, apiVersion: g/v1, kind: A` + rest + `, {name: b, apiVersion: g/v1, kind: A` + rest + `, {apiVersion: g/v1, kind: A` + rest, nil},
		"one name for two kinds":      {`{name: a, apiVersion: g/v1, kind: A` + rest + `, {name: a, apiVersion: g/v1, kind: B` + rest, []string{"healthCheckExprs[1].name"}},
		"a kind in two groups":        {`{apiVersion: g/v1, kind: A` + rest + `, {apiVersion: v1, kind: A` + rest, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var config configv1alpha1.Configuration
			if err := yaml.UnmarshalStrict([]byte("healthCheckExprs: ["+c.file+"]"), &config); err != nil {
				t.Fatal(err)
			}
			configv1alpha1.SetDefaults(&config)
			var got []string
			for _, err := range configv1alpha1.Validate(&config) {
				got = append(got, err.Field)
				if strings.Contains(c.file, "*") && !strings.Contains(err.Error(), "*") {
					t.Errorf("the error does not name the value: %v", err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNamesOfRules(t *testing.T) {
	for want, e := range map[string]configv1alpha1.HealthCheckExpr{
		"Pod":                         {APIVersion: "v1", Kind: "Pod"},
		"Certificate.cert-manager.io": {APIVersion: "cert-manager.io/v1", Kind: "Certificate"},
		"tls":                         {Name: "tls", APIVersion: "cert-manager.io/v1", Kind: "Certificate"},
	} {
		if got := e.RuleName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
