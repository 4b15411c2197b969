package appcontext_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestTransitionsOfAContext(t *testing.T) {
	type pair struct{ from, to appcontext.State }
	cases := map[pair]bool{
		{"", "Instantiating"}:                    true,
		{"", "Created"}:                          true,
		{"", "Terminated"}:                       false,
		{"Instantiating", "Instantiated"}:        true,
		{"Instantiating", "InstantiateFailed"}:   true,
		{"Instantiating", "Terminating"}:         true, // The running sequence is shut down first.
		{"Instantiating", "Terminated"}:          false,
		{"Instantiated", "Terminating"}:          true,
		{"Instantiated", "Terminated"}:           false,
		{"Instantiated", "TerminateFailed"}:      false,
		{"Instantiated", "Updating"}:             true,
		{"InstantiateFailed", "Terminating"}:     true,
		{"InstantiateFailed", "Instantiating"}:   true,
		{"InstantiateFailed", "Instantiated"}:    false,
		{"Updating", "Updated"}:                  true,
		{"Updating", "UpdatedFailed"}:            true,
		{"Terminating", "Terminated"}:            true,
		{"Terminating", "TerminateFailed"}:       true,
		{"Terminating", "Instantiated"}:          false,
		{"Terminated", "Instantiating"}:          true,
		{"Terminated", "Instantiated"}:           false,
		{"TerminateFailed", "Terminating"}:       true,
		{"TerminateFailed", "InstantiateFailed"}: false,
		{"Instantiated", "Instantiated"}:         true,
		{"Instantiated", ""}:                     false,
		{"Instantiated", "Hibernating"}:          true,
		{"Hibernating", "Instantiated"}:          true,
	}
	for p, want := range cases {
		if got := p.from.CanTransition(p.to); got != want {
			t.Errorf("%q to %q: want %t", p.from, p.to, want)
		}
	}
}

func TestTransitionsOfAResource(t *testing.T) {
	type pair struct{ from, to appcontext.ResourceStatus }
	cases := map[pair]bool{
		{"", "Pending"}:         true,
		{"", "Applied"}:         false,
		{"Pending", "Applied"}:  true,
		{"Pending", "Failed"}:   true,
		{"Pending", "Retrying"}: true,
		{"Retrying", "Applied"}: true,
		{"Retrying", "Deleted"}: true,
		{"Applied", "Deleted"}:  true,
		{"Applied", "Failed"}:   true,
		{"Applied", ""}:         false,
		{"Deleted", "Applied"}:  true,
		{"Deleted", "Frozen"}:   true,
	}
	for p, want := range cases {
		if got := p.from.CanTransition(p.to); got != want {
			t.Errorf("%q to %q: want %t", p.from, p.to, want)
		}
	}
}

func TestTransitionsOfActions(t *testing.T) {
	lives := map[string][]appcontext.ActionState{
		"group":         {"Created", "Approved", "Instantiated", "Terminated", "Approved", "Instantiated", "Updated", "Instantiated", "InstantiateStopped", "Terminated", "Instantiated"},
		"cluster":       {"Created", "Applied", "Terminated", "Applied"},
		"logical cloud": {"Created", "Instantiated", "Terminated", "Instantiated"},
	}
	for name, life := range lives {
		var from appcontext.ActionState
		for _, to := range life {
			if !from.CanTransition(to) {
				t.Errorf("%s: %q cannot follow %q", name, to, from)
			}
			from = to
		}
	}
	for _, p := range [][2]appcontext.ActionState{{"", "Instantiated"}, {"Created", "Terminated"}, {"Approved", "Terminated"}, {"Instantiated", "Created"}, {"Terminated", "Updated"}} {
		if p[0].CanTransition(p[1]) {
			t.Errorf("%q can follow %q", p[1], p[0])
		}
	}
}

func TestEveryStateHasAnEndAndABeginning(t *testing.T) {
	all := []appcontext.State{
		appcontext.StateCreated, appcontext.StateInstantiating, appcontext.StateInstantiated, appcontext.StateInstantiateFailed,
		appcontext.StateTerminating, appcontext.StateTerminated, appcontext.StateTerminateFailed,
		appcontext.StateUpdating, appcontext.StateUpdated, appcontext.StateUpdateFailed,
	}
	for _, s := range all {
		if !s.Known() {
			t.Errorf("%q is not known", s)
		}
		if !reachable(all, "", s) || !reachable(all, s, appcontext.StateTerminated) {
			t.Errorf("a context cannot come to %q, or cannot be terminated from there", s)
		}
		if s.Moving() != strings.HasSuffix(string(s), "ing") {
			t.Errorf("%q is moving: %t", s, s.Moving())
		}
	}
	for _, s := range []appcontext.ResourceStatus{"Pending", "Applied", "Failed", "Retrying", "Deleted"} {
		if !s.Known() {
			t.Errorf("%q is not known", s)
		}
	}
	for _, s := range []appcontext.ActionState{"Undefined", "Created", "Approved", "Applied", "Instantiated", "Updated", "Terminated", "InstantiateStopped", "TerminateStopped"} {
		if !s.Known() {
			t.Errorf("%q is not known", s)
		}
	}
}

// reachable says whether there is a way from one state to another by known states.
func reachable(all []appcontext.State, from, to appcontext.State) bool {
	seen := map[appcontext.State]bool{from: true}
	for queue := []appcontext.State{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range all {
			if queue[0].CanTransition(next) && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen[to]
}

func TestUnknownWordsMayGoAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := appcontext.State(rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "word"))
		known := rapid.SampledFrom([]appcontext.State{"", appcontext.StateInstantiated, appcontext.StateTerminated}).Draw(t, "known")
		if word.Known() || !word.CanTransition(known) || !known.CanTransition(word) {
			t.Errorf("%q is held up", word)
		}
	})
}
