package bundle_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

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
			b := &k8spluginv1alpha1.ResourceBundleState{}
			b.Name = tc.name
			if tc.label != "" {
				b.Labels = map[string]string{k8spluginv1alpha1.LabelDeploymentID: tc.label}
			}
			if tc.selector != nil {
				b.Spec.Selector = &metav1.LabelSelector{MatchLabels: tc.selector}
			}
			if got := bundle.App(b); got != tc.want {
				t.Errorf("the app is %q, want %q", got, tc.want)
			}
		})
	}
}
