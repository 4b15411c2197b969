package sync_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestMain draws only 30 histories by default, because they are long. -rapid.checks changes the number.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const owner = "healthscope-lab"

var tenant = aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "t"}

func key(id string) aai.Key { return aai.Key{Tenant: tenant, ID: id} }

// document returns a desired document in a state, with the changes.
func document(id, status string, changes ...func(*aai.Document)) aai.Document {
	d := aai.Document{
		ID: id, Name: "n-" + id, Version: "v1", Kind: "Service", Namespace: "ns", Labels: []string{"hs/status=" + status},
		Selflink: "http://x", DataOwner: owner, DataSource: "edge",
	}
	for _, change := range changes {
		change(&d)
	}
	return d
}

// related adds relationships to a document, as the mapping does.
func related(relationships ...aai.Relationship) func(*aai.Document) {
	return func(d *aai.Document) {
		for _, r := range relationships {
			d.RelationshipList.Relationships = append(d.RelationshipList.Relationships, r)
			d.Labels = append(d.Labels, "hs/link="+r.Target())
		}
	}
}

// linked relates a document to VNFs.
func linked(vnfs ...string) func(*aai.Document) {
	relationships := make([]aai.Relationship, 0, len(vnfs))
	for _, vnf := range vnfs {
		relationships = append(relationships, aai.RelationshipToGenericVNF(vnf))
	}
	return related(relationships...)
}

// many returns n documents.
func many(n int, status string, changes ...func(*aai.Document)) (list []aai.Document) {
	for i := range n {
		list = append(list, document(fmt.Sprintf("%03d", i), status, changes...))
	}
	return list
}

// desired returns changes after which the documents are desired.
func desired(list ...aai.Document) map[aai.Key]aaisync.Desired {
	m := map[aai.Key]aaisync.Desired{}
	for _, d := range list {
		m[key(d.ID)] = aaisync.Desired{Document: &d}
	}
	return m
}

// inTurn returns a function that returns the changes one after the other, and then none.
func inTurn(changes ...map[aai.Key]aaisync.Desired) func() aaisync.Change {
	return func() aaisync.Change {
		if len(changes) == 0 {
			return aaisync.Change{}
		}
		next := changes[0]
		changes = changes[1:]
		return aaisync.Change{Desired: next}
	}
}

func documents(list ...aai.Document) map[aai.Key]aai.Document {
	m := map[aai.Key]aai.Document{}
	for _, d := range list {
		m[key(d.ID)] = d
	}
	return m
}

// fail is the part of *testing.T and *rapid.T that helpers use.
type fail interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// world is an A&AI, a Syncer that writes to it, and a clock.
type world struct {
	*simulator.Simulator
	t       fail
	client  *client.Client
	breaker *client.Breaker
	syncer  *aaisync.Syncer
	// asked holds what the syncer was asked to write, and objects the states that it reported.
	asked   map[aai.Key]aaisync.Desired
	objects map[aai.Key]aaisync.ObjectStatus
	// written holds the audited writes.
	written []aaisync.WriteEvent
	// intercept replaces A&AI for a request if it returns a response or an error. It returns passOn() otherwise.
	intercept func(*http.Request) (*http.Response, error)
	// attempts counts the requests, including those that do not reach A&AI.
	attempts atomic.Int32
	// arrive is called when a request has arrived, before A&AI sees it.
	arrive   func()
	password string
	// pageSize is used by clients that are created from now on. If it is zero, they use the default.
	pageSize int
	// leads is used by clients that are created from now on. If it is nil, they may write.
	leads func() bool
	lanes lanes

	// desiring is locked while the desired documents or the leader change during a pass.
	desiring sync.Mutex

	mu  sync.Mutex
	now time.Time
}

// newWorld returns a world whose A&AI holds the seeds.
func newWorld(t fail, seeds ...simulator.Fixture) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), password: "good", pageSize: 100}
	w.simulate(simulator.Options{}, seeds...)
	w.connect("http://aai.example", w, nil)
	return w
}

// simulate replaces A&AI with a new simulator, after a check of the requests to the old one.
func (w *world) simulate(o simulator.Options, seeds ...simulator.Fixture) {
	w.t.Helper()
	if w.Simulator != nil {
		w.checkRequests()
	}
	o.Strict, o.Users, o.Clock = true, map[string]string{"AAI": "good"}, w.clock
	w.Simulator = simulator.New(o)
	w.seed(seeds...)
}

// connect creates a client of A&AI, and a Syncer that uses it. A nil transport means the default transport.
func (w *world) connect(url string, transport http.RoundTripper, breaker *client.Breaker) {
	w.t.Helper()
	c, err := client.New(client.Options{
		BaseURL: url, Transport: transport, PageSize: w.pageSize, Breaker: breaker, Leads: w.leads,
		Credentials: func() (string, string, error) { return "AAI", w.password, nil },
	})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.client, w.breaker = c, breaker
	w.restart()
}

// everything returns the objects that exist in an A&AI that is ready for use.
func everything() []simulator.Fixture {
	return []simulator.Fixture{
		simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"), simulator.GenericVNF("vnf-1"), simulator.GenericVNF("vnf-2"),
	}
}

func start(t *testing.T, seeds ...simulator.Fixture) *world {
	t.Helper()
	if seeds == nil {
		seeds = everything()
	}
	w := newWorld(t, seeds...)
	t.Cleanup(w.checkRequests)
	return w
}

// checkRequests checks that our requests were correct and had no violations in the simulator's strict mode.
func (w *world) checkRequests() {
	w.t.Helper()
	w.checkJournal()
	w.checkLanes()
	for _, v := range w.Violations() {
		w.t.Errorf("violation: %+v", v)
	}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// restart creates a Syncer without any state, and with the changes of its options.
func (w *world) restart(changes ...func(*aaisync.Options)) {
	o := aaisync.Options{Client: w.client, Clock: w.clock, Plan: plan.Options{Owner: owner, LabelPrefix: "hs/", LabelKeys: []string{"app"}}, Audit: w.audit}
	for _, change := range changes {
		change(&o)
	}
	w.syncer = aaisync.New(o)
	w.asked, w.objects = map[aai.Key]aaisync.Desired{}, map[aai.Key]aaisync.ObjectStatus{}
}

func (w *world) audit(o aaisync.WriteEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, o)
}

// RoundTrip sends a request to A&AI without a network.
func (w *world) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.attempts.Add(1)
	if w.intercept != nil {
		if answer, err := w.intercept(r); answer != nil || err != nil {
			if answer != nil {
				answer.Request = r
			}
			return answer, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			if cause, ok := p.(error); !ok || !errors.Is(cause, http.ErrAbortHandler) {
				panic(p)
			}
			answer, err = nil, errors.New("connection closed")
		}
	}()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer w.enterLanes(r)()
	recorder := httptest.NewRecorder()
	w.serve(recorder, r)
	return recorder.Result(), nil
}

// overHTTP sends requests over real connections. Writes overlap when the client sends one before the end of another: a server learns later
// than the client that a connection is broken.
type overHTTP struct {
	*http.Transport

	world *world
}

// RoundTrip sends a request to A&AI.
func (o overHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer o.world.enterLanes(r)()
	return o.Transport.RoundTrip(r)
}

// enterLanes records that a request begins, and returns a function that records its end.
func (w *world) enterLanes(r *http.Request) (leave func()) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Errorf("cannot read the body of a request: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.lanes.enter(simulator.Request{Method: r.Method, Path: r.URL.EscapedPath(), Body: string(body)})
}

// serve passes a request to A&AI.
func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	if w.arrive != nil {
		w.arrive()
	}
	runtime.Gosched() // Other requests can run in between.
	w.ServeHTTP(out, r)
}

// passOn is what intercept returns for a request that A&AI answers.
func passOn() (*http.Response, error) { return nil, nil }

// answer returns a response that replaces the response of A&AI.
func answer(status int, header http.Header, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

// slow makes A&AI take longer for some requests.
func (w *world) slow(d time.Duration, affected func(*http.Request) bool) {
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if !affected(r) {
			return passOn()
		}
		select {
		case <-time.After(d):
			return passOn()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// refuseWrites makes A&AI respond with a status to writes that concern an object.
func (w *world) refuseWrites(id string, status int) {
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if isWrite(r) && mentions(r, id) {
			return answer(status, nil, ""), nil
		}
		return passOn()
	}
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// isList reports whether a request reads a page of the list of the tenant.
func isList(r *http.Request) bool {
	return !isWrite(r) && strings.HasSuffix(r.URL.Path, tenant.ResourcesPath())
}

// mentions reports whether a request concerns an object, alone or with others.
func mentions(r *http.Request, id string) bool {
	if strings.HasSuffix(r.URL.Path, "/"+id) {
		return true
	}
	if r.Body == nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return strings.Contains(string(body), "/k8s-resource/"+id+`"`) || strings.Contains(string(body), "/k8s-resource/"+id+"?")
}

func (w *world) seed(seeds ...simulator.Fixture) {
	w.t.Helper()
	if err := w.Seed(seeds...); err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) faults(faults ...simulator.Fault) {
	w.t.Helper()
	if err := w.AddFaults(faults...); err != nil {
		w.t.Fatalf("%v", err)
	}
}

// outcome is a report with all objects, in the states from this report and earlier ones.
type outcome struct {
	aaisync.Report
	Objects map[aai.Key]aaisync.ObjectStatus
}

// sync runs a pass that must succeed.
func (w *world) sync(desired ...aai.Document) outcome {
	w.t.Helper()
	return w.guarded(plan.Guards{}, desired...)
}

// guarded runs a pass with guards, which must succeed.
func (w *world) guarded(guards plan.Guards, desired ...aai.Document) outcome {
	w.t.Helper()
	r, err := w.pass(w.t.Context(), documents(desired...), guards)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return r
}

func (w *world) trySync(desired ...aai.Document) (outcome, error) {
	return w.pass(w.t.Context(), documents(desired...), plan.Guards{})
}

// pass runs a pass in which exactly these documents are desired. The syncer is asked only for what has changed.
func (w *world) pass(ctx context.Context, desired map[aai.Key]aai.Document, guards plan.Guards) (outcome, error) {
	syncer := w.syncer
	r, err := syncer.Sync(ctx, tenant, func() aaisync.Change {
		w.desiring.Lock()
		defer w.desiring.Unlock()
		if syncer != w.syncer { // Another replica has taken over.
			return aaisync.Change{}
		}
		return aaisync.Change{Desired: w.changes(desired, guards), Deletions: guards.Deletions, Existing: guards.Existing}
	})
	if syncer != w.syncer {
		return outcome{r, nil}, err
	}
	for k, o := range r.Changed {
		w.objects[k] = o
		if o.State == "" {
			delete(w.objects, k)
		}
	}
	return outcome{r, maps.Clone(w.objects)}, err
}

// changes returns what has changed since the syncer was last asked.
func (w *world) changes(desired map[aai.Key]aai.Document, guards plan.Guards) map[aai.Key]aaisync.Desired {
	changed := map[aai.Key]aaisync.Desired{}
	for k := range w.asked {
		changed[k] = aaisync.Desired{}
	}
	for k, document := range desired {
		changed[k] = aaisync.Desired{Document: &document, Seen: w.clock()}
	}
	for k, held := range guards.Keys {
		if held {
			d := changed[k]
			d.Held = true
			changed[k] = d
		}
	}
	maps.DeleteFunc(changed, func(k aai.Key, d aaisync.Desired) bool {
		before := w.asked[k]
		return before.Held == d.Held && reflect.DeepEqual(before.Document, d.Document)
	})
	maps.Copy(w.asked, changed)
	return changed
}

// expect checks the requests that are sent while do runs, in any order.
func (w *world) expect(want []string, do func()) {
	w.t.Helper()
	got := w.requests(do)
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
		w.t.Errorf("requests, -want +got:\n%s", diff)
	}
}

// expectSync runs a pass that must succeed, and checks its requests.
func (w *world) expectSync(requests []string, desired ...aai.Document) (r outcome) {
	w.t.Helper()
	w.expect(requests, func() { r = w.sync(desired...) })
	return r
}

var cmpEmpty = cmp.Transformer("nil", func(l []string) []string { return append([]string{}, l...) })

// failure returns err as an *aai.Error, and checks that it has the kind and names the tenant.
func failure(t *testing.T, err error, kind aai.ErrorKind) *aai.Error {
	t.Helper()
	e, ok := errors.AsType[*aai.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(err.Error(), `tenant "o/r/t"`) {
		t.Fatalf("got %v, want an error of kind %s about the tenant", err, kind)
	}
	return e
}

// expectKind checks that err is an *aai.Error of the kind.
func expectKind(t *testing.T, err error, kind aai.ErrorKind) {
	t.Helper()
	_ = failure(t, err, kind)
}

// others makes a third party put, patch or delete an object. Faults do not affect it.
func (w *world) others(action, uri string, body map[string]any) {
	w.t.Helper()
	if err := w.Act(simulator.Action{Action: action, URI: uri, Body: body}); err != nil {
		w.t.Fatalf("%v", err)
	}
}

// foreign is a document of another owner.
var foreign = map[string]any{
	"name": "x", "group": "", "version": "v1", "kind": "Pod", "namespace": "", "selflink": "s", "data-owner": "CnfAdapter", "labels": []string{"their=own"},
}

// edgeOf is the path of the relationships of a document, and edgeTo a relationship to a VNF.
func edgeOf(id string) string { return key(id).Path() + "/relationship-list/relationship" }

func edgeTo(vnf string) map[string]any {
	return map[string]any{"related-to": "generic-vnf", "related-link": aai.RelationshipToGenericVNF(vnf).Target()}
}

// stored returns the labels of the documents in A&AI by id, sorted. They include the target of each relationship, after an
// arrow.
func (w *world) stored() map[string][]string {
	found := map[string][]string{}
	for _, d := range w.List(tenant.ResourcesPath()) {
		id, _ := d["id"].(string)
		labels, _ := d["labels"].([]string)
		found[id] = slices.Sorted(slices.Values(append(labels, targets(d)...)))
	}
	return found
}

func targets(d map[string]any) []string {
	relationships, _ := d["relationship-list"].(map[string]any)
	edges, _ := relationships["relationship"].([]map[string]any)
	list := make([]string, 0, len(edges))
	for _, edge := range edges {
		link, _ := edge["related-link"].(string)
		list = append(list, "-> "+link[strings.LastIndexByte(link, '/')+1:])
	}
	return list
}

// expectStored checks the documents in A&AI.
func (w *world) expectStored(want map[string][]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.stored(), cmpEmpty); diff != "" {
		w.t.Errorf("in A&AI, -want +got:\n%s", diff)
	}
}

// expectObjects checks state and reason of every object, as "Pending NotTried".
func (w *world) expectObjects(want map[string]string, r outcome) {
	w.t.Helper()
	got := map[string]string{}
	counts := map[aaisync.State]int{}
	for k, o := range r.Objects {
		got[k.ID] = strings.TrimSpace(string(o.State) + " " + string(o.Reason))
		counts[o.State]++
		if (o.State == aaisync.Synced) != (o.Message == "") {
			w.t.Errorf("%q is %s with the message %q", k.ID, got[k.ID], o.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("objects, -want +got:\n%s", diff)
	}
	if counts[aaisync.Synced] != r.Synced || counts[aaisync.Pending] != r.Pending || counts[aaisync.Failed] != r.Failed {
		w.t.Errorf("counts are %d, %d, %d; objects are %v", r.Synced, r.Pending, r.Failed, counts)
	}
}
