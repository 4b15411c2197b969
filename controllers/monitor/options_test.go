package monitor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	got := Options{}.complete()
	if got.Clock == nil {
		t.Error("Clock is nil")
	}
	if got.WatchClock == nil {
		t.Error("WatchClock is nil")
	}
	if got.Registerer == nil {
		t.Error("Registerer is nil")
	}
	got.Clock, got.WatchClock, got.Registerer = nil, nil, nil
	want := Options{
		LabelKeys:      []string{k8spluginv1alpha1.LabelDeploymentID},
		Kinds:          DefaultKinds(),
		HardLimit:      1 << 20,
		LeaseNamespace: "healthscope-system",
		LeaseDuration:  15 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("complete() differs (-want +got):\n%s", diff)
	}
}

func TestOptionsAreCompleted(t *testing.T) {
	t.Parallel()
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for name, tc := range map[string]struct{ given, want Options }{
		"some imply others": {Options{LabelKeys: []string{"a"}, TrustedNamespaces: []string{"x", "x"}, CreateBundles: "b"}, Options{
			LabelKeys: []string{"a", "b"}, TrustedNamespaces: []string{"x"},
			Kinds: append(DefaultKinds(), schema.GroupVersionKind{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}),
		}},
		"duplicates": {
			Options{LabelKeys: []string{"b", "a", "b"}, Kinds: []schema.GroupVersionKind{pod, pod}, Namespaces: []string{"x", "x"}},
			Options{LabelKeys: []string{"b", "a"}, Kinds: []schema.GroupVersionKind{pod}, Namespaces: []string{"x"}},
		},
	} {
		got := tc.given.complete()
		for range 2 { // Completing complete options changes nothing.
			lists := Options{LabelKeys: got.LabelKeys, Kinds: got.Kinds, Namespaces: got.Namespaces, TrustedNamespaces: got.TrustedNamespaces}
			if diff := cmp.Diff(tc.want, lists); diff != "" {
				t.Errorf("%s: complete() differs (-want +got):\n%s", name, diff)
			}
			got = got.complete()
		}
	}
}

func TestManagerOptions(t *testing.T) {
	t.Parallel()
	got, err := ManagerOptions(Options{Namespaces: []string{"a", "b"}, LeaseNamespace: "here", LeaseDuration: 30 * time.Second})
	if err != nil {
		t.Fatalf("ManagerOptions: %v", err)
	}
	if !got.LeaderElection || got.LeaderElectionID != LeaseName || got.LeaderElectionNamespace != "here" {
		t.Errorf("leader election = %t with Lease %q in %q, want true with %q in %q",
			got.LeaderElection, got.LeaderElectionID, got.LeaderElectionNamespace, LeaseName, "here")
	}
	times := []time.Duration{*got.LeaseDuration, *got.RenewDeadline, *got.RetryPeriod}
	if diff := cmp.Diff([]time.Duration{30 * time.Second, 20 * time.Second, 6 * time.Second}, times); diff != "" {
		t.Errorf("lease duration, renew deadline and retry period differ (-want +got):\n%s", diff)
	}
	if len(got.Cache.DefaultNamespaces) != 2 {
		t.Errorf("cache covers namespaces %v, want a and b", got.Cache.DefaultNamespaces)
	}
	if !got.Scheme.Recognizes(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)) {
		t.Error("scheme does not know ResourceBundleState")
	}
}
