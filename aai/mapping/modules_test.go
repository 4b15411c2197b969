package mapping_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/healthscope"
)

// app returns the summary of members in these states. A capital P is Pending and serving.
func app(states string) (s healthscope.Summary) {
	for _, state := range states {
		m := healthscope.Member{}
		switch state {
		case 'r':
			m.State, m.Counts = healthscope.Ready, healthscope.Ready
		case 'p':
			m.State, m.Counts = healthscope.Pending, healthscope.Pending
		case 'P':
			m.State, m.Counts, m.Serving = healthscope.Pending, healthscope.Pending, true
		case 'f':
			m.State, m.Counts = healthscope.Failed, healthscope.Failed
		case 'n':
			m.State, m.Counts = healthscope.NotPresent, healthscope.Failed
		case 'u':
			m.State, m.Counts = healthscope.Unknown, healthscope.Unknown
		}
		s.Add(m)
	}
	return s
}

func TestOperationalStatus(t *testing.T) {
	cases := map[string]aai.OperationalStatus{
		"":     "",
		"rrr":  aai.InServicePath,
		"rP":   aai.InServicePath,
		"rp":   aai.OutOfServicePath,
		"rf":   aai.OutOfServicePath,
		"rn":   aai.OutOfServicePath,
		"ru":   "",
		"u":    "",
		"urrf": aai.OutOfServicePath,
		"up":   aai.OutOfServicePath,
	}
	for states, want := range cases {
		t.Run(states, func(t *testing.T) {
			if got := mapping.OperationalStatus(app(states)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestTheWorseOfTwoAppsCounts asserts that two apps with the same module result in the same status as one app with the members
// of both.
func TestTheWorseOfTwoAppsCounts(t *testing.T) {
	if got := mapping.Worse(aai.InServicePath, aai.InServicePath); got != aai.InServicePath {
		t.Errorf("of two apps in service, got %q", got)
	}
	states := rapid.StringOfN(rapid.RuneFrom([]rune("rpPfnu")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := states.Draw(t, "a"), states.Draw(t, "b")
		want := mapping.OperationalStatus(app(a + b))
		if got := mapping.Worse(mapping.OperationalStatus(app(a)), mapping.OperationalStatus(app(b))); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestModuleIsOneThatIsAllowed(t *testing.T) {
	cases := map[string]struct {
		namespace, vnf, module string
		found                  bool
	}{
		"allowed by name":     {"vfw", "vnf-2", "m", true},
		"not allowed":         {"vfw", "vnf-3", "m", false},
		"no module":           {"vfw", "vnf-2", "", false},
		"no VNF, all allowed": {"lab", "", "m", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := mapping.Module(c.namespace, c.vnf, c.module, options())
			if want := (aai.VFModule{GenericVNFID: c.vnf, ID: c.module}); found != c.found || found && got != want {
				t.Errorf("got %v, %t", got, found)
			}
		})
	}
}
