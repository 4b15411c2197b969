package api

import (
	"sync"
	"testing"
)

// TestDocumentsForManyCallers asserts that all concurrent callers get the right response.
func TestDocumentsForManyCallers(t *testing.T) {
	h := NewHandler(Options{Documents: manyDocuments(t)})
	targets := []string{autumnURL, autumnURL + "?output=summary", autumnURL + "?output=detail", networkURL, autumnURL + "?instance=" + goneID}
	want := map[string]string{}
	for _, target := range targets {
		want[target] = get(t, h, target, nil).Body.String()
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for n := range 20 {
				target := targets[(i+n)%len(targets)]
				if got := get(t, h, target, nil).Body.String(); got != want[target] {
					t.Errorf("%s: %s, want %s", target, got, want[target])
				}
			}
		})
	}
	group.Wait()
}
