package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// filled is a bundle as it should be: four pods, the first of which crashes.
func filled(a app) *bundleView {
	s := k8spluginv1alpha1.ResourceBundleStateStatus{
		ResourceCount: int32(a.resources()),
		Summary:       &k8spluginv1alpha1.Summary{Total: int32(a.resources()), Ready: int32(a.resources() - 1), Failed: 1},
	}
	add := func(kind, name, state string) {
		s.Resources = append(s.Resources, k8spluginv1alpha1.ResourceHealth{Kind: kind, Name: name, State: state})
	}
	add("Pod", a.podName(0), "Failed")
	for i := 1; i < a.pods; i++ {
		add("Pod", a.podName(i), "Ready")
	}
	for i := range a.configMaps {
		add("ConfigMap", a.configMapName(i), "Ready")
	}
	add("Deployment", a.name, "Ready")
	add("Service", a.name, "Ready")
	return &bundleView{status: s}
}

func TestChecksFindWhatIsWrong(t *testing.T) {
	a := app{namespace: "ns", name: "a", pods: 4, configMaps: 1, bare: true}
	expected := expectation{failed: []int{0}}
	for name, c := range map[string]struct {
		spoil func(*k8spluginv1alpha1.ResourceBundleStateStatus)
		want  string
	}{
		"nothing": {func(*k8spluginv1alpha1.ResourceBundleStateStatus) {}, ""},
		"empty": {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) {
			*s = k8spluginv1alpha1.ResourceBundleStateStatus{}
		}, "no summary"},
		"count":                         {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.ResourceCount-- }, "resourceCount is 6, not 7"},
		"summary":                       {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Summary.Pending, s.Summary.Ready = 1, 5 }, "the summary counts"},
		"ready":                         {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Ready = true }, "ready is true"},
		"a failure that is not told":    {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources[0].State = "Ready" }, "is Ready"},
		"a failure out of nothing":      {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources[6].State = "Failed" }, `Service "a" is Failed`},
		"a resource left out":           {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources = s.Resources[:6] }, "truncated is not true"},
		"a resource left out, admitted": {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources, s.Truncated = s.Resources[:6], true }, "it names 6 of 7 resources"},
		"a failure left out, admitted":  {func(s *k8spluginv1alpha1.ResourceBundleStateStatus) { s.Resources, s.Truncated = s.Resources[1:], true }, "0 of 1 pods that are not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			b := filled(a)
			c.spoil(&b.status)
			got := a.complete(expected)(b)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCheckFindsAPodThatHasLeft(t *testing.T) {
	a := app{namespace: "ns", name: "a", pods: 4, configMaps: 1, bare: true}
	b := filled(a)
	b.status.ResourceCount--
	b.status.Summary.Total--
	b.status.Summary.Ready--
	e := expectation{failed: []int{0}, absent: []int{3}}
	if got := a.right(e)(b); !strings.Contains(got, "which does not belong to it") {
		t.Errorf("got %q for a bundle that names a pod that has left", got)
	}
	b.status.Resources = append(b.status.Resources[:3:3], b.status.Resources[4:]...)
	if got := a.complete(e)(b); got != "" {
		t.Errorf("got %q for a bundle that is right", got)
	}
}

func TestBoardTellsWhatIsMissing(t *testing.T) {
	b := newBoard[int]("numbers")
	name := types.NamespacedName{Namespace: "ns", Name: "n"}
	even := map[types.NamespacedName]check[int]{name: func(n int) string {
		if n%2 == 0 {
			return ""
		}
		return "it is odd"
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	b.put(name, 1)
	_, err := b.await(ctx, "an even number", even)
	if err == nil || !strings.Contains(err.Error(), `waited for an even number: 1 numbers are not right, one of them "ns/n": it is odd`) {
		t.Errorf("got error %v", err)
	}
	seen := b.expect("an even number", even)
	before := time.Now()
	b.put(name, 2)
	at, err := seen(t.Context())
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("got %v, %v for a number that was even at %v", at, err, before)
	}
	if _, err := b.await(t.Context(), "an even number", even); err != nil {
		t.Errorf("got error %v for what is true already", err)
	}
	b.remove(name)
	if len(b.snapshot()) != 0 {
		t.Errorf("what was removed is still there")
	}
}
