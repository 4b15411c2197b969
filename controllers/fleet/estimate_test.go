package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/healthscope"
)

// TestUsageEstimateMatchesTheHeap: a budget counts estimated bytes. For bundles of any size the estimate is close to the heap
// that they use, in the store and in the view together. A hub holds 100,000 resources in 100 MiB. The test measures in a separate process, whose heap has no data of other tests.
func TestUsageEstimateMatchesTheHeap(t *testing.T) {
	const alone = "HEALTHSCOPE_TEST_ALONE"
	if os.Getenv(alone) == "" {
		test := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		test.Env = append(os.Environ(), alone+"=1")
		if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for name, c := range map[string]struct {
		bundles, resources int
		long               string
		most               int64 // of bytes for each resource
	}{
		"small":         {bundles: 1_000, resources: 0},
		"two resources": {bundles: 1_000, resources: 2},
		"typical":       {bundles: 250, resources: 20, most: 1024},
		"large":         {bundles: 3, resources: 1_000},
		"long messages": {bundles: 10, resources: 200, long: strings.Repeat("x", 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			estimate, usageOf := int64(0), usageOfBundle(nil)
			v := newView("hub")
			before := heap()
			v.setState(ClusterState{Name: "edge", Reachability: Connected, Since: noon})
			s := newStore("edge")
			for i := range c.bundles {
				b := received(t, "edge", fmt.Sprintf("17188744879264%05d-app", i), c.resources)
				for r := range b.Status.Resources {
					if c.long != "" {
						b.Status.Resources[r].Message = fmt.Sprintf("%s %d %d", c.long, i, r) // Each has its own text: equal texts are stored once.
					}
				}
				estimate += usageOf(b).bytes
				if err := s[""].Add(b); err != nil {
					t.Fatal(err)
				}
			}
			k := newBundleSyncer("edge", v, healthscope.DefaultPolicy(), clocktesting.NewFakeClock(noon), nil)
			t.Cleanup(k.queue.ShutDown)
			k.resync(s)
			held := int64(heap() - before)
			t.Logf("%d bundles of %d resources: %d bytes are held, %d are estimated, %.2f of it", c.bundles, c.resources, held, estimate, float64(estimate)/float64(held))
			if estimate > 2*held || held > 2*estimate {
				t.Errorf("%d bytes are held, and %d are estimated", held, estimate)
			}
			if each := held / int64(max(c.bundles*c.resources, 1)); c.most > 0 && each > c.most {
				t.Errorf("a resource takes %d bytes, and may take %d", each, c.most)
			}
			runtime.KeepAlive(k)
			runtime.KeepAlive(v)
		})
	}
}
