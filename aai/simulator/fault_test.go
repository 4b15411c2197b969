package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// statuses sends requests one after the other and returns their status codes.
func (h *harness) statuses(calls ...call) []int {
	h.t.Helper()
	list := make([]int, len(calls))
	for i, c := range calls {
		list[i] = h.send(c).status
	}
	return list
}

func TestFaultsHitWhatTheyDescribe(t *testing.T) {
	asking := func(app string) call { return call{path: vnf, header: map[string]string{"X-FromAppId": app}} }
	deep := call{path: vnf + "/vf-modules/vf-module/mod-1"}
	for name, tc := range map[string]struct {
		fault  Fault
		hit    []call
		passed []call
	}{
		"method":        {Fault{Method: "GET"}, []call{{path: vnf}}, []call{patch1(vnf, "{}")}},
		"prefix":        {Fault{PathPrefix: "/aai/v32/network"}, []call{{path: vnf}, deep}, []call{{path: region}, {path: "/aai/v24" + vnf}}},
		"whole path":    {Fault{Path: "/aai/v32" + vnf}, []call{{path: vnf}}, []call{deep, {path: otherVNF}}},
		"one segment":   {Fault{Path: "/aai/*/network/generic-vnfs/generic-vnf/*"}, []call{{path: vnf}, {path: "/aai/v24" + otherVNF}}, []call{deep}},
		"any segments":  {Fault{Path: "**/vf-module/*"}, []call{deep}, []call{{path: vnf}}},
		"part of one":   {Fault{Path: "**/vnf-*"}, []call{{path: vnf}}, []call{deep, {path: region}}},
		"no expression": {Fault{Path: "/aai/v32/.*"}, nil, []call{{path: vnf}}},
		"application":   {Fault{FromAppID: "me"}, []call{asking("me")}, []call{asking("you")}},
		"body":          {Fault{BodyContains: "ACTIVE"}, []call{patch1(vnf, `{"prov-status":"ACTIVE"}`)}, []call{patch1(vnf, `{}`)}},
		"operation": {
			Fault{Operation: "**/generic-vnf/vnf-2"},
			[]call{bulk1(operations(op("patch", vnf, "{}"), op("patch", "/aai/v32"+otherVNF+"?x=y", "{}")))},
			[]call{bulk1(operations(op("patch", vnf, "{}"))), {path: otherVNF}},
		},
		"all of them": {
			Fault{Method: "GET", FromAppID: "me", Path: "**/vnf-1"}, []call{asking("me")}, []call{asking("you"), {path: otherVNF}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			tc.fault.Status = 599
			h.fault(tc.fault)
			for _, c := range tc.hit {
				diff(t, "hit "+c.method+c.path, 599, h.send(c).status)
			}
			for _, c := range tc.passed {
				if status := h.send(c).status; status >= 300 {
					t.Errorf("%s %s: status %d", c.method, c.path, status)
				}
			}
		})
	}
}

func TestSkipAndCountSelectTheNthCall(t *testing.T) {
	h := newHarness(t, Options{})
	h.fault(Fault{Method: "GET", Skip: 2, Count: 2, Status: 503})
	get := call{path: vnf}
	diff(t, "statuses", []int{200, 200, 200, 503, 503, 200}, h.statuses(get, patch1(vnf, "{}"), get, get, get, get))
}

func TestProbabilityIsRepeatable(t *testing.T) {
	sample := func(seed uint64) []int {
		h := newHarness(t, Options{})
		h.fault(Fault{Probability: 0.3, Seed: seed, Status: 503})
		calls := make([]call, 400)
		for i := range calls {
			calls[i] = call{path: vnf}
		}
		return h.statuses(calls...)
	}
	first := sample(1)
	diff(t, "with the same seed", first, sample(1))
	if slices.Equal(first, sample(2)) {
		t.Error("another seed gives the same hits")
	}
	hits := strings.Count(fmt.Sprint(first), "503")
	if hits < 80 || hits > 160 {
		t.Errorf("%d of 400 hit with probability 0.3", hits)
	}
}

// TestConcurrentFaultHitsTheBusyWriters asserts that three of six concurrent writers find the storage locked.
func TestConcurrentFaultHitsTheBusyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.fault(Fault{Method: "PUT", Concurrent: 4, Code: "AAI_6134"}, Fault{Method: "PUT", Delay: time.Second})
		var mu sync.Mutex
		got := map[int]int{}
		var writers sync.WaitGroup
		for i := range 6 {
			writers.Go(func() {
				status := h.send(put1(fmt.Sprintf("%s/k8s-resource/w%d", resources, i), podBody)).status
				mu.Lock()
				defer mu.Unlock()
				got[status]++
			})
			synctest.Wait() // until the request waits for the delay, or has ended
		}
		writers.Wait()
		// Rejected requests end immediately, so that each of the last three is the fourth in flight.
		diff(t, "statuses", map[int]int{201: 3, 500: 3}, got)
		diff(t, "alone", http.StatusCreated, h.send(put1(pod, podBody)).status)
	})
}

func TestFaultHitsOneOperationOfABulkRequest(t *testing.T) {
	h := newHarness(t, Options{})
	h.fault(Fault{Operation: "**/k8s-resource/b*", Code: "AAI_6131", Count: 1})
	many := bulk1(operations(
		op("put", resources+"/k8s-resource/a", podBody), op("put", "/aai/v32"+resources+"/k8s-resource/b", podBody),
		op("put", resources+"/k8s-resource/b"+relationshipPath, linkTo(vnf)),
	))
	out := h.send(many)
	diff(t, "status", 412, out.status)
	want := "Invalid input performing %1 on %2:Operation 1 with action (PUT) on uri (" + resources + "/k8s-resource/b) failed with status code (412), " +
		"error code (ERR.5.4.6131) and msg (Precondition Failed:by a fault rule)"
	diff(t, "variables", []string{"POST", "v32/bulk/single-transaction", want, "ERR.5.2.3000"}, out.errorBody(t).variables)
	diff(t, "nothing is done", 0, len(h.List(resources)))
	h.fault(Fault{Operation: "**/relationship", Code: "AAI_6140", Count: 1})
	if body := h.send(many).body; !strings.Contains(body, "Operation 2 with action (PUT_EDGE) on uri ("+resources+"/k8s-resource/b/relationship-list/relationship)") {
		t.Errorf("the relationship is not named: %s", body)
	}
	diff(t, "the next", 201, h.send(many).status)
}

func TestStaleReads(t *testing.T) {
	h := newHarness(t, Options{})
	kind := func(c call) any {
		out := h.send(c)
		if out.status != http.StatusOK {
			return out.status
		}
		return out.decode(t)["kind"]
	}
	fresh := call{path: pod, header: map[string]string{"X-FromAppId": "other"}}
	h.fault(Fault{Method: "GET", FromAppID: "test", Stale: time.Minute})
	h.must(put1(pod, podBody))
	diff(t, "before it was made", any(404), kind(call{path: pod}))
	h.now = h.now.Add(2 * time.Minute)
	diff(t, "later", any("Pod"), kind(call{path: pod}))
	h.must(patch1(pod, `{"kind":"Job"}`))
	diff(t, "the version before", any("Pod"), kind(call{path: pod}))
	diff(t, "in a list", 200, h.send(call{path: resources + "?kind=Pod"}).status)
	diff(t, "for others", any("Job"), kind(fresh))
	stale := h.must(call{path: pod}).decode(t)["resource-version"]
	diff(t, "a write with it", 412, h.send(put1(pod, with(`"resource-version":"`+as[string](t, stale)+`"`, podBody))).status)
	h.now = h.now.Add(30 * time.Second)
	h.must(delete1(pod+"?resource-version={rv}", ""))
	h.now = h.now.Add(30 * time.Second)
	diff(t, "half way", any("Job"), kind(call{path: pod}))
	h.now = h.now.Add(30 * time.Second)
	diff(t, "in the end", any(404), kind(call{path: pod}))
	h.must(put1(pod, linked(vnf)))
	h.now = h.now.Add(2 * time.Minute)
	h.must(delete1(podEdge, linkTo(vnf)))
	diff(t, "relationships before they went", 200, h.send(call{path: pod + "/relationship-list"}).status)
	h.ClearFaults()
	h.fault(Fault{Method: "DELETE", Status: 503})
	h.must(patch1(vnf, "{}"))
	if len(h.snapshots) > 0 {
		t.Error("the past is remembered though no fault wants it")
	}
}

func TestRestart(t *testing.T) {
	h := newHarness(t, Options{})
	if err := h.Restart(true); err == nil {
		t.Error("a write was lost though there was none")
	}
	h.must(put1(pod, linked(vnf)))
	lost := h.version(pod)
	diff(t, "status", http.StatusNoContent, h.control("POST", "/__sim/restart", `{}`).status)
	diff(t, "nothing is lost", lost, h.version(pod))
	diff(t, "and nothing can be lost after it", http.StatusBadRequest, h.control("POST", "/__sim/restart", `{"lose-last-write":true}`).status)

	h = newHarness(t, Options{})
	h.must(put1(pod, linked(vnf)))
	before := h.State()
	h.must(bulk1(operations(op("patch", pod, `{"kind":"Job","relationship-list":{"relationship":[]}}`), op("put", resources+"/k8s-resource/x", podBody))))
	h.send(put1(pod, podBody)) // This is rejected, and hence not the last write.
	lost = h.version(pod)
	diff(t, "status", http.StatusNoContent, h.control("POST", "/__sim/restart", `{"lose-last-write":true}`).status)
	diff(t, "the last write is lost wholly", before, h.State())
	checkInvariants(t, h.inventory)
	h.must(patch1(pod, "{}"))
	if h.version(pod) <= lost {
		t.Errorf("version %s was given out before the restart", h.version(pod))
	}
	h.seed(GenericVNF("vnf-9"))
	if h.Restart(true) == nil {
		t.Error("a write was lost that fixtures came after")
	}
	h.must(patch1(pod, "{}"))
	if err := h.ReplaceState(h.State()...); err != nil || h.Restart(true) == nil {
		t.Error("a write was lost that another inventory came after")
	}
	diff(t, "unknown field", http.StatusBadRequest, h.control("POST", "/__sim/restart", `{"lose":true}`).status)
}
