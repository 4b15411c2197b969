package bundle_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// TestForeignTextsAreClean asserts that results contain no characters that control a terminal, whatever a member writes into a
// bundle.
func TestForeignTextsAreClean(t *testing.T) {
	const evil = "a\x1b[2J\u009b\u202eb\r\nc\u2028d"
	far := metav1.NewTime(time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC))
	entries := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{
		Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1, Failed: 1},
		Resources: []k8spluginv1alpha1.ResourceHealth{{
			Group: evil, Version: evil, Kind: evil, Namespace: evil, Name: evil, UID: evil, State: "Failed", Reason: evil, Message: evil, Since: &far,
			Owner: &k8spluginv1alpha1.ResourceOwner{Group: evil, Kind: evil, Name: evil}, Labels: map[string]string{evil: evil},
		}},
		Malformed: []string{evil},
	}}
	encoded, err := json.Marshal([]any{map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": evil, "namespace": evil},
		"status": map[string]any{"phase": "Failed", "reason": evil, "message": evil},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lists := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{PodStatuses: encoded}}
	for name, b := range map[string]*k8spluginv1alpha1.ResourceBundleState{"entries": entries, "lists": lists} {
		t.Run(name, func(t *testing.T) {
			read := bundle.Read("edge", b)
			if len(read.Results) != 1 {
				t.Fatalf("%d results were read, want 1", len(read.Results))
			}
			r := read.Results[0]
			texts := append([]string{r.Group, r.Version, r.Kind, r.Namespace, r.Name, r.UID, string(r.Reason), r.Message}, read.Malformed...)
			if r.Owner != nil {
				texts = append(texts, r.Owner.Group, r.Owner.Kind, r.Owner.Name)
			}
			for key, value := range r.Labels {
				texts = append(texts, key, value)
			}
			for _, text := range texts {
				if strings.ContainsAny(text, "\x1b\u009b\u202e\r\n\u2028") {
					t.Errorf("%q is not clean", text)
				}
			}
			if !r.Since.IsZero() {
				t.Errorf("since is %s, want none", r.Since)
			}
		})
	}
}
