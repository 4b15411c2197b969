package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// life is how the samples of a process go from one value to another.
func life(process string, leads bool, n int, figure string, from, to float64) []sample {
	program, _, _ := strings.Cut(process, "-")
	samples := make([]sample, n)
	for i := range samples {
		values := map[string]float64{figureHeap: 50, figureGoroutines: 100, figureDescriptors: 20, figureMemory: 80}
		values[figure] = from + (to-from)*float64(i)/float64(n-1)
		samples[i] = sample{Seconds: float64(i), Process: process, Program: program, Life: 1, Leads: leads, Values: values}
	}
	return samples
}

func TestGrowthIsFound(t *testing.T) {
	calm := func(program string) []sample { return life(program+"-1", true, samplesOfSoak, figureHeap, 50, 50) }
	both := slices.Concat(calm("monitor"), calm("controller"))
	// A process that is started anew has a life of its own, and what it takes at first is no growth.
	anew := life("controller-2", false, samplesOfSoak, figureHeap, 100, 100)
	for i := range anew {
		if i < samplesOfSoak/2 {
			anew[i].Life, anew[i].Values[figureHeap] = 2, 50
		}
	}
	for name, c := range map[string]struct {
		samples []sample
		want    string
	}{
		"nothing":                       {both, ""},
		"a small heap grows little":     {slices.Concat(both, life("monitor-2", false, samplesOfSoak, figureHeap, 20, 27)), ""},
		"a heap doubles":                {slices.Concat(both, life("monitor-2", false, samplesOfSoak, figureHeap, 50, 100)), "live heap MiB of monitor-2 has grown"},
		"a few goroutines more":         {slices.Concat(both, life("controller-2", true, samplesOfSoak, figureGoroutines, 100, 110)), ""},
		"goroutines leak":               {slices.Concat(both, life("controller-2", true, samplesOfSoak, figureGoroutines, 100, 400)), "goroutines of controller-2 has grown"},
		"descriptors leak":              {slices.Concat(both, life("controller-2", false, leastSamples, figureDescriptors, 20, 60)), "descriptors of controller-2 has grown"},
		"resident memory is not judged": {slices.Concat(both, life("controller-2", false, samplesOfSoak, figureMemory, 50, 500)), ""},
		"too short to tell":             {slices.Concat(both, life("controller-2", false, leastSamples-1, figureHeap, 50, 500)), ""},
		"the second of two lives":       {slices.Concat(both, anew), ""},
		"nobody leads for long":         {slices.Concat(calm("monitor"), life("controller-1", true, leastSamples-1, figureHeap, 50, 50)), "no controller has led"},
		"a standby is no leader":        {slices.Concat(calm("controller"), life("monitor-1", false, samplesOfSoak, figureHeap, 50, 50)), "no monitor has led"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(judgeGrowth(stretchesOf(c.samples))...)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

// kindsOf are the troubles of episodes.
func kindsOf(all []episode) map[trouble]bool {
	kinds := map[trouble]bool{}
	for _, e := range all {
		kinds[e.trouble] = true
	}
	return kinds
}

func TestEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		duration := time.Duration(rapid.Int64Range(int64(shortestSoak), int64(4*time.Hour)).Draw(t, "duration"))
		got := episodesOf(seed, duration)
		if diff := cmp.Diff(got, episodesOf(seed, duration), cmp.AllowUnexported(tracks{}, episode{})); diff != "" {
			t.Fatalf("the same seed gives other episodes:\n%s", diff)
		}
		ordered := func(name string, track []episode, end time.Duration) {
			for i, e := range track {
				if e.length <= 0 || e.at < 0 || e.at+e.length > end {
					t.Fatalf("%s: episode %+v is not within %s", name, e, end)
				}
				if i > 0 && e.at < track[i-1].at+track[i-1].length {
					t.Fatalf("%s: episode %+v begins before %+v is over", name, e, track[i-1])
				}
			}
		}
		ordered("A&AI", got.inventory, duration*9/10)
		ordered("API server", got.apiServer, duration*3/4)
		if len(got.apiServer) == 0 || len(kindsOf(got.inventory)) != len(inventoryFaults) {
			t.Fatalf("%d restarts of the API server, and faults of A&AI %v", len(got.apiServer), kindsOf(got.inventory))
		}
		for _, program := range soakedPrograms() {
			ordered(program, got.leaders[program], min(duration/2, 10*time.Minute))
			if diff := cmp.Diff(map[trouble]bool{troubleKill: true, troubleStop: true, troubleLease: true}, kindsOf(got.leaders[program])); diff != "" {
				t.Fatalf("troubles of the %s (-want +got):\n%s", program, diff)
			}
		}
	})
}

// TestEpisodesAreAsManyAsItIsSaid checks the numbers in config/docs/benchmarks.md.
func TestEpisodesAreAsManyAsItIsSaid(t *testing.T) {
	for duration, want := range map[time.Duration][3]int{2 * time.Minute: {9, 1, 3}, time.Hour: {54, 22, 30}} {
		for seed := range uint64(10) {
			all := episodesOf(seed, duration)
			for _, program := range soakedPrograms() {
				if got := [3]int{len(all.inventory), len(all.apiServer), len(all.leaders[program])}; got != want {
					t.Errorf("in %s, with seed %d, troubles of A&AI, the API server and the %s come %d times, want %d", duration, seed, program, got, want)
				}
			}
			for _, e := range all.inventory {
				if duration == time.Hour && (e.length < 6*time.Second || e.length > 20*time.Second) {
					t.Errorf("a trouble of A&AI takes %s in an hour, want 6 to 20 seconds", e.length)
				}
			}
		}
	}
}

func TestFaultsOfInventoryAreValid(t *testing.T) {
	for what, faults := range inventoryFaults {
		for _, fault := range faults {
			if err := fault.Validate(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

const (
	refused  = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Error retrieving lease lock" err="Get \"https://127.0.0.1:1/x\": dial tcp 127.0.0.1:1: connect: connection refused" lock=healthscope-system/healthscope-monitor`
	limited  = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Inventory not up to date" controller=inventory err="cannot list \"/x\": status 429: Too Many Requests" retryAfter=2s`
	exists   = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Error initially creating lease lock" err="leases.coordination.k8s.io \"healthscope-monitor\" already exists" lock=healthscope-system/healthscope-monitor`
	cutShort = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Unexpected error when reading response body" err="unexpected EOF"`
	tooLate  = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Unexpected error when reading response body" err="context deadline exceeded"`
	unsent   = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Unable to write event (may retry after sleeping)" logger=events err="Post \"https://127.0.0.1:1/x\": context canceled"`
	unsynced = `time=2026-11-22T11:19:03.962Z level=ERROR msg="Could not wait for Cache to sync" controller=monitor source="labelled objects" err="failed to wait for monitor caches to sync labelled objects: cannot read \"/v1, Kind=Pod\": context canceled"`
	fine     = `time=2026-11-22T11:19:04.962Z level=INFO msg="Starting the monitor" version=devel`
	ended    = `healthscope: cannot run the monitor: leader election lost`
)

func TestErrorsNeedAnExplanation(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.TimeOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 22, parsed.Hour(), parsed.Minute(), parsed.Second(), 0, time.UTC)
	}
	during := func(what trouble, replica, begin, end string) []incident {
		return []incident{{Trouble: what, Replica: replica, Begin: at(begin), End: at(end)}}
	}
	for name, c := range map[string]struct {
		log         string
		incidents   []incident
		unexplained int
	}{
		"no errors":                               {fine, nil, 0},
		"an error while the API server is away":   {refused, during(troubleAPIServer, "", "11:19:01", "11:19:05"), 0},
		"an answer that it did not finish":        {cutShort, during(troubleAPIServer, "", "11:19:01", "11:19:05"), 0},
		"an answer that nobody cut short":         {cutShort, during(troubleLease, "monitor-1", "11:19:01", "11:19:05"), 1},
		"an answer that a lost Lease cut short":   {tooLate, during(troubleLease, "monitor-1", "11:18:54", "11:18:54"), 0},
		"an answer that is late for no reason":    {tooLate, during(troubleLease, "monitor-2", "11:18:54", "11:18:54"), 1},
		"soon after":                              {refused, during(troubleAPIServer, "", "11:18:50", "11:18:55"), 0},
		"long after":                              {refused, during(troubleAPIServer, "", "11:18:40", "11:18:45"), 1},
		"before":                                  {refused, during(troubleAPIServer, "", "11:19:04", "11:19:05"), 1},
		"while something else is wrong":           {refused, during(troubleHangs, "", "11:19:01", "11:19:05"), 1},
		"an error while A&AI limits":              {limited, during(troubleLimits, "", "11:19:01", "11:19:05"), 0},
		"another answer of A&AI":                  {limited, during(troubleErrors, "", "11:19:01", "11:19:05"), 1},
		"last words":                              {ended + "\n" + fine, during(troubleLease, "monitor-1", "11:18:54", "11:18:54"), 0},
		"last words because of another's loss":    {ended + "\n" + fine, during(troubleLease, "monitor-2", "11:18:54", "11:18:54"), 1},
		"last words after a short outage":         {ended + "\n" + fine, during(troubleAPIServer, "", "11:18:58", "11:19:01"), 1},
		"last words after a long outage":          {ended + "\n" + fine, during(troubleAPIServer, "", "11:18:50", "11:19:01"), 0},
		"last words that nothing comes after":     {fine + "\n" + ended, during(troubleLease, "monitor-1", "11:19:50", "11:19:50"), 0},
		"a stop before all was read":              {unsynced, during(troubleStop, "monitor-1", "11:18:59", "11:19:00"), 0},
		"a stop while it reports":                 {unsent, during(troubleStop, "monitor-1", "11:18:59", "11:19:00"), 0},
		"a stop of another":                       {unsent, during(troubleStop, "monitor-2", "11:18:59", "11:19:00"), 1},
		"a start that gives up by itself":         {unsynced, nil, 1},
		"two replicas at once":                    {exists, during(troubleBegin, "", "11:19:01", "11:19:05"), 0},
		"two replicas later":                      {exists, during(troubleStop, "monitor-1", "11:19:01", "11:19:05"), 1},
		"a panic, in spite of much that is wrong": {"panic: boom\n\ngoroutine 1 [running]:\n" + fine, during(troubleAPIServer, "", "11:19:01", "11:19:05"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := errorsIn(strings.NewReader(c.log+"\n"), at("11:20:00"))
			if err != nil {
				t.Fatal(err)
			}
			v := verdict{Explained: map[string]int{}}
			v.explain("monitor-1", lines, c.incidents)
			if len(v.Unexplained) != c.unexplained || (v.err() != nil) != (c.unexplained > 0) {
				t.Errorf("got %d lines without an explanation, want %d: %v", len(v.Unexplained), c.unexplained, v.err())
			}
		})
	}
	if _, err := errorsIn(strings.NewReader("time=noon level=ERROR msg=x\n"), at("11:20:00")); err == nil {
		t.Error("a time that cannot be read is no error")
	}
}

// deaf is an API server that does what it is asked, but loses the answer of the first request of each kind.
func deaf() client.Client {
	lost := map[string]bool{}
	lose := func(kind string, err error) error {
		if lost[kind] || err != nil {
			return err
		}
		lost[kind] = true
		return io.ErrUnexpectedEOF
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return lose("create", c.Create(ctx, o.DeepCopyObject().(client.Object), opts...)) //nolint:forcetypeassert // A copy of an object.
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return lose("delete", c.Delete(ctx, o, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return lose("update", c.SubResource(sub).Update(ctx, o.DeepCopyObject().(client.Object), opts...)) //nolint:forcetypeassert // A copy of an object.
		},
	})
}

func TestRequestsOutliveTheAPIServer(t *testing.T) {
	c := stubborn{deaf(), newGate()}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	if err := c.Create(t.Context(), pod); err != nil || pod.ResourceVersion == "" {
		t.Fatalf("created without an answer: %v, version %q", err, pod.ResourceVersion)
	}
	pod.Status.Phase = corev1.PodRunning
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Errorf("status written without an answer: %v", err)
	}
	got := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("got phase %q (%v)", got.Status.Phase, err)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Errorf("deleted without an answer: %v", err)
	}
	if err := c.Delete(t.Context(), pod); !apierrors.IsNotFound(err) {
		t.Errorf("got %v for what has not been there, want that it is not found", err)
	}
}

func TestAnswersOfTheAPIServer(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no connection": {io.EOF, false},
		"not found":     {apierrors.NewNotFound(pods, "p"), true},
		"invalid":       {apierrors.NewBadRequest("x"), true},
		"busy":          {apierrors.NewTooManyRequests("x", 1), false},
		"starting":      {apierrors.NewServiceUnavailable("x"), false},
		"etcd is slow":  {apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", pods, "p", "x", 0, true), false},
	} {
		if got := answered(c.err); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestGateHoldsRequestsBack(t *testing.T) {
	g := newGate()
	reopen := g.shut()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	sent := 0
	send := func(context.Context) error { sent++; return nil }
	if _, err := g.insist(ctx, send); err == nil || !strings.Contains(err.Error(), "no time") || sent > 0 {
		t.Errorf("got error %v after %d requests through a gate that is shut", err, sent)
	}
	reopen()
	if _, err := g.insist(t.Context(), send); err != nil || sent != 1 {
		t.Errorf("got error %v after %d requests through a gate that is open", err, sent)
	}
}

func TestReportOfASoak(t *testing.T) {
	samples := slices.Concat(life("monitor-1", true, samplesOfSoak, figureHeap, 50, 100), life("controller-1", true, samplesOfSoak, figureHeap, 50, 50))
	s := &soaking{plane: &plane{options: options{duration: time.Minute, seed: 7}}, samples: samples, changes: map[string]int{"pods changed": 1000}, churned: time.Minute}
	var out bytes.Buffer
	err := s.judge(&out)
	if err == nil || !strings.Contains(err.Error(), "live heap MiB of monitor-1 has grown from") {
		t.Errorf("got error %v", err)
	}
	for _, want := range []string{"with seed 7, 1000 changes in a minute", "| monitor-1, leading", "| NO ", "| yes ", "| without an explanation | 0 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report says nothing of %q:\n%s", want, &out)
		}
	}
}
