package monitor

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestCompressTrimsCachedBundles(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	list := append([]byte(`["`), bytes.Repeat([]byte("packet-processor "), 1000)...)
	list = append(list, `"]`...)
	stored := &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "1-sink", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "monitor", Operation: "Update", Subresource: "status", Time: &metav1.Time{Time: at}},
		}},
		Status: k8spluginv1alpha1.ResourceBundleStateStatus{
			PodStatuses: list, ServiceStatuses: []byte("[]"), ResourceStatuses: []byte(`"odd"`),
			Summary: &k8spluginv1alpha1.ResourceCounts{State: "Ready"},
		},
	}
	cached := stored.DeepCopy() // Of the managed fields, the cache keeps who wrote the status.
	cached.ManagedFields = []metav1.ManagedFieldsEntry{writer("rsync", "", at), writer("monitor", "status", at)}
	for range 2 { // The cache may transform an object again.
		if _, err := compress(cached); err != nil {
			t.Fatal(err)
		}
	}
	if got := sizeOf(&cached.Status); got > len(list)/10 {
		t.Errorf("the cached lists take %d of %d bytes, want much less", got, len(list))
	}
	if got, want := uncompressedSize(&cached.Status), sizeOf(&stored.Status); got != want {
		t.Errorf("a bundle of %d bytes counts as one of %d while it is held slim", want, got)
	}
	before := cached.DeepCopy()
	for range 2 {
		got, err := decompressed(cached)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, got); diff != "" {
			t.Errorf("the bundle differs after it was held (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("reading a bundle changed the cache (-want +got):\n%s", diff)
	}
	if got, err := decompressed(stored); err != nil || !cmp.Equal(stored, got) {
		t.Errorf("a bundle that is whole becomes %v, %v", got, err)
	}
}

func TestDecompressedErrorNamesList(t *testing.T) {
	t.Parallel()
	b := bundleAt("1")
	b.Status.PodStatuses = []byte{compressed, 0xff, 0xff}
	if _, err := decompressed(b); err == nil || !strings.Contains(err.Error(), `podStatuses of bundle "ns/1-sink"`) {
		t.Errorf("whole: %v, want an error that names the list and the bundle", err)
	}
}
