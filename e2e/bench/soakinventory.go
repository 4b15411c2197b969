package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/healthscope/healthscope/healthscope"
)

// awaitInventory waits until A&AI holds the pods of all applications with a scope, in the right states, and no others. A&AI
// announces nothing.
func (s *soaking) awaitInventory(ctx context.Context) error {
	want := map[string]string{}
	for _, a := range s.apps {
		for i := range a.pods {
			if a.scope == nil || a.absent[i] {
				continue
			}
			state := healthscope.Ready
			if a.crashed[i] {
				state = healthscope.Failed
			}
			want[a.podName(i)] = string(state)
		}
	}
	got := map[string]string{}
	err := poll(ctx, fmt.Sprintf("A&AI to hold %d pods in the right states", len(want)), func(ctx context.Context) (bool, error) {
		objects, err := s.hs.Objects(ctx)
		clear(got)
		for _, o := range objects {
			if o.Body["kind"] == "Pod" {
				got[fmt.Sprint(o.Body["name"])] = o.Label(stateLabel)
			}
		}
		return maps.Equal(got, want), err
	})
	if err != nil {
		return fmt.Errorf("it holds %d, %s: %w", len(got), difference(got, want), err)
	}
	return nil
}

// difference names one pod that is not as it should be.
func difference(got, want map[string]string) string {
	for name, state := range want {
		if got[name] != state {
			return fmt.Sprintf("%q is %q, not %q", name, got[name], state)
		}
	}
	for name, state := range got {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%q, which is %s, should not be there", name, state)
		}
	}
	return "which is right"
}
