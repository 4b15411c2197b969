package sync_test

import (
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

var ids = []string{"a", "b", "c", "d", "e", "f"}

const (
	// tooManyWait is the pause that A&AI requests when it has too many requests.
	tooManyWait = 90 * time.Second
	// passLimit is the maximum number of requests of a pass over these objects, in any case: a list and a probe, and for each
	// object up to two restarts of about ten requests each.
	passLimit = 150
)

// history is a world in which random events happen.
type history struct {
	*world
	desired   map[aai.Key]aai.Document
	operation operation
	// replicated is true when other replicas can take over.
	replicated bool
	// backup is an older state of A&AI, or nil if there is none.
	backup []simulator.Fixture
}

// newHistory returns a history that begins in a world.
func newHistory(w *world) *history {
	h := &history{world: w, desired: map[aai.Key]aai.Document{}}
	w.arrive = h.operation.arrive
	return h
}

// TestSyncConvergesUnderFaults mixes changes of the desired documents, faults of A&AI, operations of third parties and restarts.
// After each pass it checks that nothing of third parties has changed. In the end it checks that A&AI holds the desired
// documents, and that no more requests are sent. Each of the five parts draws its own histories.
func TestSyncConvergesUnderFaults(t *testing.T) {
	for part := range 5 {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t)
				w.simulate(anyServer(t), everything()...)
				w.connect("http://aai.example", w, client.NewBreaker(0, w.clock))
				h := newHistory(w)
				h.replicated = true
				h.happen(t)
			})
		})
	}
}

// TestSyncConvergesUnderFaultsOverHTTP is the same test with real connections, which faults break.
func TestSyncConvergesUnderFaultsOverHTTP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.simulate(anyServer(t), everything()...)
		server := httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Start()
		defer server.Close()
		w.connect(server.URL, overHTTP{&http.Transport{}, w}, client.NewBreaker(0, w.clock))
		defer w.client.Close()
		newHistory(w).happen(t)
	})
}

// anyServer returns the options of an A&AI that accepts few or many operations in a bulk request.
func anyServer(t *rapid.T) simulator.Options {
	return simulator.Options{BulkLimit: rapid.SampledFrom([]int{1, 2, 3, 30}).Draw(t, "bulk limit")}
}

// happen runs random events, and then checks the end.
func (h *history) happen(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){
		"desire":  h.desire,
		"forsake": func(t *rapid.T) { delete(h.desired, key(anyID(t))) },
		"pass":    func(t *rapid.T) { h.pass(t, anyGuards(t)) },
		"fault":   h.fault,
		"time": func(t *rapid.T) {
			h.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "time"))
		},
		"restart":        func(*rapid.T) { h.restart() },
		"A&AI restarts":  h.restartAAI,
		"backup":         h.backUpOrRestore,
		"takeover":       h.takeover,
		"meanwhile":      h.meanwhile,
		"change":         h.changeMeanwhile,
		"tenant":         func(*rapid.T) { h.apart(func() { h.tenantComesOrGoes("") }) },
		"others label":   h.othersLabel,
		"others own":     h.othersOwn,
		"others delete":  h.othersRemove,
		"others relate":  h.othersRelate,
		"others rewrite": h.othersRewrite,
		"VNF":            h.vnfComesOrGoes,
	})
	h.end(t)
}

// restartAAI restarts A&AI, possibly from a storage without the last write.
func (h *history) restartAAI(t *rapid.T) {
	if rapid.Bool().Draw(t, "without the last write") && h.Restart(true) == nil { // There may be no write to lose.
		return
	}
	if err := h.Restart(false); err != nil {
		t.Fatalf("%v", err)
	}
}

// backUpOrRestore makes a backup of A&AI, or restores the last one. After a restore, the first request fails.
func (h *history) backUpOrRestore(t *rapid.T) {
	if h.backup == nil {
		h.backup = h.State()
		return
	}
	if err := h.ReplaceState(h.backup...); err != nil {
		t.Fatalf("%v", err)
	}
	h.backup = nil
	h.faults(simulator.Fault{Status: http.StatusServiceUnavailable, Count: 1})
}

func anyID(t *rapid.T) string { return rapid.SampledFrom(ids).Draw(t, "id") }

func anyGuards(t *rapid.T) plan.Guards {
	switch rapid.IntRange(0, 5).Draw(t, "guards") {
	case 0:
		return plan.Guards{Keys: map[aai.Key]bool{key(anyID(t)): true}}
	case 1:
		return plan.Guards{Deletions: map[plan.Partition]string{{}: "nothing is known"}}
	default:
		return plan.Guards{}
	}
}

func (h *history) desire(t *rapid.T) {
	status := rapid.SampledFrom([]string{"Ready", "Pending", "Failed"}).Draw(t, "status")
	links := rapid.SampledFrom([][]string{nil, {"vnf-1"}, {"vnf-2"}}).Draw(t, "links")
	d := document(anyID(t), status, linked(links...))
	d.Version = rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version")
	h.desired[key(d.ID)] = d
}

// changeMeanwhile runs a pass during which the desired documents change.
func (h *history) changeMeanwhile(t *rapid.T) {
	id, status := anyID(t), rapid.SampledFrom([]string{"Ready", "Failed", ""}).Draw(t, "status")
	h.operation.plan(rapid.IntRange(0, 6).Draw(t, "after"), func() {
		h.desiring.Lock()
		defer h.desiring.Unlock()
		if h.desired[key(id)] = document(id, status); status == "" {
			delete(h.desired, key(id))
		}
		h.syncer.Wake(tenant)
	})
	h.pass(t, plan.Guards{})
}

func (h *history) fault(t *rapid.T) {
	f := rapid.SampledFrom([]simulator.Fault{
		{Status: http.StatusServiceUnavailable}, {Status: http.StatusTooManyRequests, RetryAfter: strconv.Itoa(int(tooManyWait / time.Second))}, {Code: "AAI_7406"}, {Code: "AAI_6134"}, {Code: "AAI_4000"},
		{Truncate: true}, {Method: http.MethodPost, Truncate: true}, {Method: http.MethodPost, Drop: simulator.DropAfterCommit}, {Method: http.MethodPost, Status: http.StatusBadGateway},
		{Method: http.MethodPost, Code: "AAI_6137"}, {Status: http.StatusForbidden}, {Status: http.StatusInternalServerError}, {Status: http.StatusBadRequest}, {Status: http.StatusPreconditionFailed},
		{Status: http.StatusUnauthorized}, {Status: http.StatusNotFound}, {Status: http.StatusRequestTimeout}, {Status: http.StatusGatewayTimeout},
		{Status: http.StatusTemporaryRedirect, Location: "https://elsewhere.example/aai"}, {Status: http.StatusServiceUnavailable, RetryAfter: "30"},
		{Empty: true}, {Method: http.MethodGet, Empty: true}, {XML: true}, {Gzip: true}, {WrongLength: true}, {Method: http.MethodGet, Stale: time.Second},
		{Code: "AAI_6134", Concurrent: 2}, {Operation: "**/k8s-resource/b", Code: "AAI_6137"}, {Operation: "**/k8s-resource/c", Code: "AAI_6140"},
		{Drop: simulator.DropMidBody}, {Drop: simulator.DropMidBody, Manner: simulator.MannerReset}, {Drop: simulator.DropBeforeCommit, Manner: simulator.MannerReset},
		{Drop: simulator.DropBeforeCommit}, {Drop: simulator.DropAfterCommit}, {Drop: simulator.DropAfterCommit, Method: http.MethodPut},
		{Drop: simulator.DropAfterCommit, Method: http.MethodPatch}, {Drop: simulator.DropAfterCommit, Method: http.MethodDelete},
	}).Draw(t, "fault")
	f.Count = rapid.IntRange(1, 2).Draw(t, "count")
	h.faults(f)
}

// apart runs an operation of a third party at another time than our last read.
func (h *history) apart(do func()) {
	h.advance(10 * time.Second)
	do()
	h.advance(2 * time.Second) // A stale read returns at most the state of one second ago, and hence not the state before the operation.
}

func (h *history) othersLabel(t *rapid.T) {
	id := anyID(t)
	if labels, ok := h.labels(id); ok {
		labels = append(labels, rapid.SampledFrom([]string{"team=red", "team=blue"}).Draw(t, "label"))
		slices.Sort(labels)
		h.apart(func() { h.others("patch", key(id).Path(), map[string]any{"labels": slices.Compact(labels)}) })
	}
}

// othersRewrite changes our part of a document, except for the claims on relationships. Without the claims, the owner of a
// relationship is not known.
func (h *history) othersRewrite(t *rapid.T) {
	id := anyID(t)
	if labels, ok := h.labels(id); ok {
		all := slices.DeleteFunc(labels, func(l string) bool { return !strings.HasPrefix(l, "hs/link=") })
		all = append(all, "hs/status=Wrong", "app=wrong")
		h.apart(func() { h.others("patch", key(id).Path(), map[string]any{"labels": all, "name": "wrong"}) })
	}
}

func (h *history) othersOwn(t *rapid.T) {
	id := anyID(t)
	_, there := h.Get(tenant.Path())
	if _, ok := h.labels(id); !ok && there {
		h.apart(func() { h.others("put", key(id).Path(), foreign) })
	}
}

func (h *history) othersRemove(t *rapid.T) {
	id := anyID(t)
	if _, ok := h.labels(id); ok {
		h.apart(func() { h.others("delete", key(id).Path(), nil) })
	}
}

func (h *history) othersRelate(t *rapid.T) {
	id := anyID(t)
	d, ok := h.Get(key(id).Path())
	if _, vnf := h.Get(aai.RelationshipToGenericVNF("vnf-2").Target()); ok && vnf && len(targets(d)) == 0 {
		h.apart(func() { h.others("put", edgeOf(id), edgeTo("vnf-2")) })
	}
}

func (h *history) vnfComesOrGoes(*rapid.T) {
	path := aai.RelationshipToGenericVNF("vnf-1").Target()
	if _, ok := h.Get(path); !ok {
		h.seed(simulator.GenericVNF("vnf-1"))
		return
	}
	h.apart(func() { h.others("delete", path, nil) })
}

// labels returns the labels of a document, and whether it exists.
func (h *history) labels(id string) ([]string, bool) {
	d, ok := h.Get(key(id).Path())
	labels, _ := d["labels"].([]string)
	return slices.Clone(labels), ok
}

// all returns the documents in A&AI by id.
func (h *history) all() map[string]map[string]any {
	m := map[string]map[string]any{}
	for _, d := range h.List(tenant.ResourcesPath()) {
		id, _ := d["id"].(string)
		m[id] = d
	}
	return m
}

// pass runs a pass and checks that it changes nothing that is not ours.
func (h *history) pass(t *rapid.T, guards plan.Guards) outcome {
	h.operation.begin(h.all())
	asked, written, syncer, desired := len(h.Requests()), len(h.written), h.syncer, maps.Clone(h.desired)
	r, _ := h.world.pass(t.Context(), h.desired, guards)
	before := h.operation.end()
	limit := passLimit
	if syncer != h.syncer { // Another replica has made a pass, too.
		limit *= 2
	}
	if n := len(h.Requests()) - asked; n > limit {
		t.Fatalf("%d requests in one pass", n)
	}
	after := h.all()
	for id, was := range before {
		is, ok := after[id]
		ours := was["data-owner"] == owner
		switch {
		case !ours || guards.Keys[key(id)]:
			if diff := cmp.Diff(was, is); diff != "" {
				t.Fatalf("%q was touched:\n%s", id, diff)
			}
		case !ok && len(guards.Deletions) > 0:
			t.Fatalf("%q was deleted although its source is held", id)
		case ok && !isMadeAgain(key(id), desired, h.written[written:]):
			checkOthers(t, id, was, is, claimsOf(key(id), h.written[written:]))
		}
	}
	return r
}

// isMadeAgain reports whether a document that was not desired when a pass began was deleted in it, or may have been. If the
// document exists after the pass, it has become desired meanwhile. It is then a new document, without the parts of others.
func isMadeAgain(key aai.Key, desired map[aai.Key]aai.Document, written []aaisync.WriteEvent) bool {
	_, is := desired[key]
	return !is && slices.ContainsFunc(written, func(o aaisync.WriteEvent) bool {
		return o.Key == key && o.Verb == plan.Delete && (o.Err == nil || aai.KindOf(o.Err) == aai.Retry)
	})
}

// claimsOf returns the labels that were written to a document. A relationship that they claim is ours, also if others have added it too.
func claimsOf(key aai.Key, written []aaisync.WriteEvent) (labels []string) {
	for _, o := range written {
		if o.Key == key {
			labels = append(labels, o.Labels...)
		}
	}
	return labels
}

// checkOthers checks that a document of ours still has the labels and relationships of others. claims are labels that we have written since.
func checkOthers(t *rapid.T, id string, was, is map[string]any, claims []string) {
	had, _ := was["labels"].([]string)
	has, _ := is["labels"].([]string)
	for _, label := range had {
		if strings.HasPrefix(label, "team=") && !slices.Contains(has, label) {
			t.Fatalf("%q lost the label %q", id, label)
		}
	}
	for _, target := range targets(was) {
		claimed := slices.ContainsFunc(append(claims, had...), func(l string) bool { return strings.HasSuffix(l, strings.TrimPrefix(target, "-> ")) })
		if !claimed && !slices.Contains(targets(is), target) {
			t.Fatalf("%q lost the relationship %q", id, target)
		}
	}
}

// end removes all faults and checks that A&AI reaches the desired state.
func (h *history) end(t *rapid.T) {
	h.ClearFaults()
	h.operation.plan(0, nil)
	h.seed(simulator.Tenant(tenant.CloudOwner, tenant.CloudRegionID, tenant.TenantID), simulator.GenericVNF("vnf-1"))
	h.advance(2 * time.Minute) // An open breaker then allows one request.
	h.syncer.Resync(tenant)
	r := h.pass(t, plan.Guards{})
	after := h.all()
	for k, want := range h.desired {
		is, ok := after[k.ID]
		if !ok || is["data-owner"] != owner {
			if o := r.Objects[k]; ok != (o.Reason == aaisync.ReasonConflict) {
				t.Fatalf("%q is %+v in A&AI, and reported as %+v", k.ID, is, o)
			}
			continue
		}
		checkOurs(t, want, is, r.Objects[k])
	}
	for id, is := range after {
		if _, wanted := h.desired[key(id)]; !wanted && is["data-owner"] == owner {
			t.Fatalf("%q is left over", id)
		}
	}
	if sent := h.requests(func() { h.pass(t, plan.Guards{}) }); len(sent) > 0 {
		t.Fatalf("nothing is left to do, but %q was sent", sent)
	}
	h.t = t
	h.checkRequests()
}

// checkOurs checks that our part of a document is as desired. A relationship of others can prevent ours.
func checkOurs(t *rapid.T, want aai.Document, is map[string]any, o aaisync.ObjectStatus) {
	has, _ := is["labels"].([]string)
	has = slices.DeleteFunc(slices.Clone(has), func(l string) bool { return strings.HasPrefix(l, "team=") })
	if diff := cmp.Diff(slices.Sorted(slices.Values(want.Labels)), slices.Sorted(slices.Values(has))); diff != "" {
		t.Fatalf("labels of %q, -want +got:\n%s", want.ID, diff)
	}
	if is["version"] != want.Version || is["name"] != want.Name {
		t.Fatalf("%q is %v", want.ID, is)
	}
	state := aaisync.Synced
	for _, r := range want.RelationshipList.Relationships {
		if target := "-> " + r.Target()[strings.LastIndexByte(r.Target(), '/')+1:]; !slices.Contains(targets(is), target) {
			if len(targets(is)) == 0 {
				t.Fatalf("%q has no relationship", want.ID)
			}
			state = aaisync.Failed
		}
	}
	if o.State != state {
		t.Fatalf("%q is reported as %+v, want %s", want.ID, o, state)
	}
}
