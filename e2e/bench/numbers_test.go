package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for name, c := range map[string]struct {
		samples []time.Duration
		percent int
		want    time.Duration
	}{
		"p95 of a hundred": {hundred, 95, 95},
		"p50 of a hundred": {hundred, 50, 50},
		"p95 of ten":       {hundred[:10], 95, 100},
		"p95 of one":       {[]time.Duration{7}, 95, 7},
		"p50 of three":     {[]time.Duration{9, 1, 5}, 50, 5},
	} {
		if got := percentile(c.samples, c.percent); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestQuantileIsOfWhatCameBetween(t *testing.T) {
	before := []bucket{{0.1, 100}, {0.2, 100}, {0.4, 100}, {math.Inf(1), 100}}
	for name, c := range map[string]struct {
		counts  [4]uint64
		q, want float64
	}{
		"all in the first bucket":    {[4]uint64{110, 110, 110, 110}, 0.5, 0.05},
		"the middle of the second":   {[4]uint64{100, 110, 110, 110}, 0.5, 0.15},
		"the bound of a bucket":      {[4]uint64{105, 105, 110, 110}, 0.5, 0.1},
		"an empty bucket is skipped": {[4]uint64{105, 105, 110, 110}, 0.75, 0.3},
		"beyond the last bound":      {[4]uint64{100, 100, 100, 110}, 0.95, 0.4},
	} {
		after := slices.Clone(before)
		for i := range after {
			after[i].count = c.counts[i]
		}
		got, err := quantileSince(before, after, c.q)
		if err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %v (%v), want %v", name, got, err, c.want)
		}
	}
	for name, after := range map[string][]bucket{"nothing came": before, "there is no histogram": nil} {
		if got, err := quantileSince(before, after, 0.95); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{9, 1, 4}); got != 4 {
		t.Errorf("got %v of three, want 4", got)
	}
	if got := median([]float64{9, 1, 4, 6}); got != 5 {
		t.Errorf("got %v of four, want 5", got)
	}
}

const auditText = `{"stage":"ResponseComplete","verb":"update","requestURI":"/apis/x","user":{"username":"system:serviceaccount:healthscope-system:healthscope-monitor"},"objectRef":{"resource":"resourcebundlestates","subresource":"status"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"update","requestURI":"/apis/x","user":{"username":"system:serviceaccount:healthscope-system:healthscope-monitor"},"objectRef":{"resource":"resourcebundlestates","subresource":"status"},"responseStatus":{"code":409}}
{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/pods?watch=true","user":{"username":"system:serviceaccount:healthscope-system:healthscope-monitor"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/pods?watch=true","user":{"username":"system:serviceaccount:healthscope-system:healthscope-monitor"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"watch","requestURI":"/api/v1/pods?watch=true","user":{"username":"system:serviceaccount:healthscope-system:healthscope-monitor"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","requestURI":"/apis?timeout=32s","user":{"username":"system:serviceaccount:healthscope-system:healthscope-controller"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"update","requestURI":"/apis/x","user":{"username":"system:serviceaccount:healthscope-system:healthscope-controller"},"objectRef":{"resource":"leases"},"responseStatus":{"code":200}}
`

func TestAuditLogCountsEachRequestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	half := `{"stage":"ResponseComplete","verb":"patch",`
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(auditText + half)
	log := &auditLog{path: path}
	got, err := log.next()
	if err != nil {
		t.Fatal(err)
	}
	want := requests{
		{Client: "healthscope-monitor", Verb: "update", Resource: bundleStatus}:               1,
		{Client: "healthscope-monitor", Verb: "update", Resource: bundleStatus, Failed: true}: 1,
		{Client: "healthscope-monitor", Verb: "watch", Resource: "pods"}:                      2,
		{Client: "healthscope-controller", Verb: "get", Resource: "/apis"}:                    1,
		{Client: "healthscope-controller", Verb: "update", Resource: "leases"}:                1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if n := got.writes(bundleStatus); n != 1 {
		t.Errorf("got %d writes of bundles, want 1: a conflict writes nothing", n)
	}
	needed := map[string]bool{}
	for kind := range got {
		if kind.needed() {
			needed[kind.Resource] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"pods": true, "leases": true}, needed); diff != "" {
		t.Errorf("what is needed when nothing happens (-want +got):\n%s", diff)
	}

	write(auditText + half + `"user":{"username":"x:healthscope-controller"},"objectRef":{"resource":"healthscopes","subresource":"status"},"responseStatus":{"code":200}}` + "\n")
	if got, err = log.next(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(requests{{Client: "healthscope-controller", Verb: "patch", Resource: scopeStatus}: 1}, got); diff != "" {
		t.Errorf("requests since (-want +got):\n%s", diff)
	}
}

func TestSumAddsUpSeries(t *testing.T) {
	const text = `# HELP size bytes
size_sum{group="k8splugin.io",resource="resourcebundlestates",verb="update"} 1.5e+03
size_sum{group="k8splugin.io",resource="resourcebundlestates",verb="create"} 500
size_sum{group="bench.healthscope.io",resource="resourcebundlestates",verb="update"} 7
size_sum_of_others{group="k8splugin.io",resource="resourcebundlestates"} 11
go_goroutines 42
`
	if got := sum(text, "size_sum", `resource="resourcebundlestates"`, `group="k8splugin.io"`); got != 2000 {
		t.Errorf("got %v, want 2000", got)
	}
	if got := sum(text, "go_goroutines"); got != 42 {
		t.Errorf("got %v, want 42", got)
	}
}

func TestTargetsAreJudgedAtFullScaleOnly(t *testing.T) {
	figures := []figure{{Name: "seconds", Value: 21, Target: new(20.0)}, {Name: "writes", Value: 500, Target: new(1000.0)}, {Name: "p50 ms", Value: 3}}
	for scale, want := range map[float64][]string{1: {"NO", "yes", ""}, 0.5: {"", "", ""}} {
		r := report{Scale: scale, Rows: []outcome{newOutcome(row{id: "fill"}, figures, result{length: time.Second}, scale)}}
		var out bytes.Buffer
		r.print(&out)
		var got []string
		for line := range strings.Lines(out.String()) {
			if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| fill") {
				got = append(got, strings.TrimSpace(cells[6]))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at scale %v (-want +got):\n%s", scale, diff)
		}
	}
}

func TestHalfOfTheLoneChangesAreRecoveries(t *testing.T) {
	for _, samples := range []int{10, 100} {
		for what, target := range map[string]func(int) any{
			"pods in bundles":    func(i int) any { return i * 7 % (5 * samples) },
			"pods in A&AI":       func(i int) any { return [2]int{i % 20, i / 20 % 10} },
			"workloads":          func(i int) any { return i * 7 % (10 * samples) },
			"bundles of members": func(i int) any { return [2]int{i * 7 % 100, i * 3 % 50} },
		} {
			down := map[any]bool{}
			crashes := 0
			for i := range warmUp + samples {
				one := target(targetOf(i, warmUp+samples))
				down[one] = !down[one]
				if i >= warmUp && down[one] {
					crashes++
				}
			}
			half := (warmUp + samples + 1) / 2
			if len(down) != half || crashes != half-warmUp {
				t.Errorf("%s: %d of %d changes of %d targets are crashes, want %d of %d", what, crashes, samples, len(down), half-warmUp, half)
			}
		}
	}
}

func TestIdleCountsTheCPUOfBothTogether(t *testing.T) {
	used := result{length: 10 * time.Second, processes: map[string]usage{"monitor": {cpu: 20 * time.Millisecond}, "controller": {cpu: 30 * time.Millisecond}, "etcd": {cpu: time.Second}}}
	figures := countIdle(nil, used)
	last := figures[len(figures)-1]
	if math.Abs(last.Value-0.5) > 1e-9 || last.Target == nil || *last.Target != 1 {
		t.Errorf("got %+v, want 0.5 %% with a target of 1 %%", last)
	}
}
