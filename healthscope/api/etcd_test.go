package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// storage is an etcd with its clients. The server reads it through a tap.
type storage struct {
	etcd   *controlplane.Etcd
	client *clientv3.Client
	// store writes to etcd directly, not through the tap.
	store *appcontext.Store
	tap   *faults.EtcdTap
	cache *appcontext.Cache
}

// usualProof is the interval at which the stores of tests confirm that they are current, in tests that do not count requests.
const usualProof = 50 * time.Millisecond

// newStorage starts an etcd. The tap counts the reads of autumnID.
func newStorage(t *testing.T, timeout, proof time.Duration, arguments ...string) *storage {
	t.Helper()
	suite.NeedsControlPlane(t)
	s := &storage{}
	var err error
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.etcd, err = controlplane.StartEtcd(t.Context(), controlplane.EtcdOptions{Arguments: arguments})
	fatal(err)
	t.Cleanup(func() { fatal(s.etcd.Stop()) })
	s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.etcd.Endpoint()}, Logger: zap.NewNop()})
	fatal(err)
	t.Cleanup(func() { _ = s.client.Close() })
	s.tap, err = faults.StartEtcdTap(s.etcd.Endpoint(), string(appcontext.ContextHandle(autumnID)))
	fatal(err)
	t.Cleanup(func() { _ = s.tap.Stop() })
	open := func(endpoint string, timeout time.Duration) *appcontext.Store {
		store, err := appcontext.Open(appcontext.Options{Endpoints: []string{endpoint}, Timeout: timeout, ProgressInterval: proof})
		fatal(err)
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	s.store, s.cache = open(s.etcd.Endpoint(), 30*time.Second), appcontext.NewCache(open(s.tap.URL, timeout), appcontext.CacheOptions{})
	running := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { running <- s.cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); fatal(<-running) })
	return s
}

// handler returns a handler of the status documents of the contexts in etcd.
func (s *storage) handler(clusters Clusters) http.Handler {
	return NewHandler(Options{Documents: NewDocuments(DocumentsOptions{Contexts: s.cache, Clusters: clusters, Policy: healthscope.DefaultPolicy()})})
}

// testdata returns a file of package status.
func testdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "status", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// restore writes a context that EMCO has written to etcd, and returns its keys and values.
func (s *storage) restore(t *testing.T, dump string) map[string]string {
	t.Helper()
	var values map[string]string
	err := json.Unmarshal(testdata(t, dump), &values)
	for key, value := range values {
		if err == nil {
			_, err = s.client.Put(t.Context(), key, value)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// record records an action of a user.
func (s *storage) record(t *testing.T, subject appcontext.DeploymentRef, state appcontext.ActionState, id, at string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, at)
	if err == nil {
		err = s.store.RecordAction(t.Context(), appcontext.Record{Subject: subject, Action: appcontext.Action{State: state, ContextID: id, Time: when}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// seeing is a Clusters that observes the bundles that are saved in a context.
type seeing struct {
	memoryClusters

	t     *testing.T
	saved map[string]string
}

func (s seeing) Bundle(cluster, name, _ string) (Observation, bool) {
	id, app, _ := strings.Cut(name, "-")
	var text string
	if err := json.Unmarshal([]byte(s.saved["/context/"+id+"/app/"+app+"/cluster/"+cluster+"/status/"]), &text); err != nil {
		s.t.Errorf("no bundle %q in %q: %v", name, cluster, err)
	}
	b := status.DecodeBundle(cluster, text, nil)
	r := status.SavedReport(b, healthscope.DefaultPolicy(), time.Now(), time.Now())
	r.Saved, r.Bundle = false, nil
	return Observation{Report: r, Read: func(context.Context) (*status.Bundle, error) { return b, nil }}, true
}

// TestGoldenDocumentsOfContextsInEtcd covers each complete example in the published version of EMCO's status design. For the same query, the test
// expects the same JSON from the server, byte for byte.
func TestGoldenDocumentsOfContextsInEtcd(t *testing.T) {
	s := newStorage(t, 5*time.Second, usualProof)
	s.restore(t, "context-old.json")
	hub := seeing{t: t, saved: s.restore(t, "context-new.json")}
	s.restore(t, "context-network.json")
	s.record(t, autumn, appcontext.ActionCreated, "", "2026-03-02T08:58:21.186Z")
	s.record(t, autumn, appcontext.ActionApproved, "", "2026-03-02T08:59:02.748Z")
	s.record(t, autumn, appcontext.ActionInstantiated, oldID, "2026-03-02T08:59:02.947Z")
	s.record(t, autumn, appcontext.ActionTerminated, oldID, "2026-03-02T09:14:11.061Z")
	s.record(t, autumn, appcontext.ActionApproved, "", "2026-03-02T09:15:34.436Z")
	s.record(t, autumn, appcontext.ActionInstantiated, autumnID, "2026-03-02T09:15:34.64Z")
	s.record(t, appcontext.ClusterRef("west", "berlin"), appcontext.ActionCreated, "", "2026-03-01T17:02:02.464Z")
	s.record(t, appcontext.ClusterRef("west", "berlin"), appcontext.ActionApplied, networkID, "2026-03-01T17:05:11.983Z")
	h := s.handler(hub)
	const berlin = "/v2/cluster-providers/west/clusters/berlin/status"
	for target, golden := range map[string]string{
		autumnURL:                            "golden-all.json",
		autumnURL + "?type=rsync&output=all": "golden-all.json",
		autumnURL + "?output=summary":        "golden-summary.json",
		autumnURL + "?output=detail&type=cluster&app=store&resource=store-settings":                        "golden-detail.json",
		autumnURL + "?output=all&type=rsync&resource=web-server&resource=store-settings&instance=" + oldID: "golden-instance.json",
		autumnURL + "?cluster=west%2Bbonn": "golden-cluster.json",
		autumnURL + "?instance":            "golden-instances.json",
		berlin:                             "golden-network.json",
		berlin + "?cluster=west%2Bberlin&app=network-intents": "golden-network.json",
	} {
		var want bytes.Buffer
		if err := json.Compact(&want, testdata(t, golden)); err != nil {
			t.Fatal(err)
		}
		// Contexts do not have the name of the composite profile.
		text := strings.Replace(want.String(), `"composite-profile-name":"shop-profile",`, "", 1) + "\n"
		got := get(t, h, target, nil)
		if diff := cmp.Diff(text, got.Body.String()); diff != "" || got.Code != http.StatusOK {
			t.Errorf("%s: status %d (-%s +got):\n%s", target, got.Code, golden, diff)
		}
	}
}

// TestAColdDocumentTakesOneRead asserts that the server reads a context from etcd once, for any number of requests with any query.
func TestAColdDocumentTakesOneRead(t *testing.T) {
	s := newStorage(t, 5*time.Second, time.Hour)
	s.restore(t, "context-new.json")
	s.record(t, autumn, appcontext.ActionInstantiated, autumnID, "2026-03-02T09:15:34.64Z")
	if before := s.tap.Take(); before != (faults.EtcdReads{}) {
		t.Errorf("etcd is read before anything is asked: %+v", before)
	}
	h := s.handler(memoryClusters{})
	ask := func(query string) {
		t.Helper()
		if got := get(t, h, autumnURL+query, nil); got.Code != http.StatusOK {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
	}
	ask("?type=cluster&output=all")
	if cold := s.tap.Take(); cold.Contents != 1 || cold.Others > 8 {
		t.Errorf("a cold document takes %d reads of the context and %d others, want 1 and a few that do not grow with it", cold.Contents, cold.Others)
	}
	for _, query := range []string{"", "?output=summary", "?output=full", "?type=cluster&output=all", "?health=true", "?instance"} {
		ask(query)
	}
	if warm := s.tap.Take(); warm.Contents != 0 || warm.Others != 0 {
		t.Errorf("warm documents take %d reads of the context and %d others, want none", warm.Contents, warm.Others)
	}
}

// scenario is a group with a writer. The writer writes a number, in one transaction, as the state of the context and as the last
// action.
type scenario struct {
	*storage

	h    http.Handler
	ac   *appcontext.AppContext
	root appcontext.Handle
	// written is how many numbers have been written, from 0.
	written atomic.Int64
	// answers is the number of documents that readers got, and refusals the number of responses with 503.
	answers, refusals atomic.Int64
}

func newScenario(t *testing.T, s *storage) *scenario {
	t.Helper()
	b := &scenario{storage: s, h: s.handler(memoryClusters{}), ac: appcontext.NewAppContext(s.store)}
	b.ac.InitAppContext()
	var err error
	if b.root, err = b.ac.CreateCompositeApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// write writes the next number.
func (b *scenario) write(ctx context.Context) error {
	n := b.written.Load()
	text := strconv.FormatInt(n, 10)
	err := b.store.WriteLevels(ctx, b.ac.ID(), []appcontext.Write{{Handle: b.root.Level("status"), Value: map[string]string{"Status": text}}}, appcontext.Condition{},
		appcontext.Record{Subject: autumn, Action: appcontext.Action{State: appcontext.ActionState(text), ContextID: b.ac.ID(), Time: time.UnixMilli(n), Revision: n}})
	if err == nil {
		b.written.Add(1)
	}
	return err
}

// writeMore writes the given count of numbers.
func (b *scenario) writeMore(t *testing.T, count int) {
	t.Helper()
	for range count {
		if err := b.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// read requests the status, and returns the number in the response (n), which is 0 for an error, and a description of what is
// wrong with the response; empty if nothing is. A document must show one revision of etcd, and an error must have its reason.
func (b *scenario) read(ctx context.Context, query string) (n int64, wrong string) {
	got := send(ctx, b.h, http.MethodGet, autumnURL+query, nil, "")
	if got.Code == http.StatusServiceUnavailable {
		b.refusals.Add(1)
		return 0, wrongRefusal(got)
	}
	var d status.Document
	if err := json.Unmarshal(got.Body.Bytes(), &d); err != nil || got.Code != http.StatusOK || d.State == nil || len(d.State.Actions) == 0 {
		return 0, fmt.Sprintf("status %d: %s", got.Code, got.Body)
	}
	if last := d.State.Actions[len(d.State.Actions)-1].State; last != d.Status || strconv.Itoa(len(d.State.Actions)-1) != last {
		return 0, fmt.Sprintf("torn: the state is %s, the last of %d actions %s", d.Status, len(d.State.Actions), last)
	}
	b.answers.Add(1)
	n, _ = strconv.ParseInt(d.Status, 10, 64)
	if d.LastSeen != "" {
		seen, err := time.Parse(time.RFC3339, d.LastSeen)
		if err != nil || seen.After(time.Now()) {
			return n, "last seen " + d.LastSeen
		}
	}
	return n, ""
}

// wrongRefusal returns what is wrong with an error response; empty if nothing is. It must have the cause and the header
// Retry-After.
func wrongRefusal(got *httptest.ResponseRecorder) string {
	var p Problem
	err := json.Unmarshal(got.Body.Bytes(), &p)
	says := strings.Contains(p.Detail, "cannot read the AppContexts in etcd") || strings.Contains(p.Detail, "was not ready in time")
	if err != nil || !says || got.Header().Get("Retry-After") == "" {
		return "503 without a reason: " + got.Body.String()
	}
	return ""
}

// crowd starts twenty readers, which read until stop is called. No reader may get a document that is older than its previous one.
func (b *scenario) crowd(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i := range benchClients {
		query := []string{"", "?output=summary", "?health=true", "?type=cluster", "?output=full"}[i%5]
		readers.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for last := int64(0); ctx.Err() == nil; <-pace.C {
				n, wrong := b.read(context.WithoutCancel(ctx), query)
				if wrong != "" || n != 0 && n < last {
					t.Errorf("reader %d after %d: %d, %s", i, last, n, wrong)
					return
				}
				last = max(last, n)
			}
		})
	}
	return func() { cancel(); readers.Wait() }
}

// catchUp waits until the response has the last number that was written.
func (b *scenario) catchUp(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		n, wrong := b.read(t.Context(), "")
		if wrong != "" {
			t.Fatal(wrong)
		}
		if n == b.written.Load()-1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the answer shows %d, and %d was written", n, b.written.Load()-1)
		}
	}
}

// TestDocumentsWhileEtcdIsInTrouble asserts that each response is a document of one revision or an error with the cause, whatever happens to etcd,
// and that documents are current again afterwards, without a restart.
func TestDocumentsWhileEtcdIsInTrouble(t *testing.T) {
	s := newStorage(t, 2*time.Second, usualProof, "--quota-backend-bytes=4000000")
	b := newScenario(t, s)
	b.writeMore(t, 3)

	// Etcd does not answer. A context that has not been read before is refused.
	s.tap.Delay(time.Minute)
	if n, wrong := b.read(t.Context(), ""); n != 0 || wrong != "" || b.refusals.Load() != 1 {
		t.Errorf("answered with %d, %s; %d refusals", n, wrong, b.refusals.Load())
	}
	s.tap.Delay(0)
	b.catchUp(t)

	// Etcd is full. Writes are refused until it has space again, and reads never are.
	stop := b.crowd(t)
	defer stop()
	b.writeMore(t, 30)
	s.fill(t)
	for range 20 {
		if err := b.write(t.Context()); !errors.Is(err, appcontext.ErrNoSpace) {
			t.Fatalf("a full etcd takes an action, or refuses it with: %v", err)
		}
	}
	b.catchUp(t)
	if b.refusals.Load() != 1 { // Before makeSpace, during which etcd does not answer.
		t.Errorf("%d reads were refused while etcd was full", b.refusals.Load()-1)
	}
	s.makeSpace(t)
	b.writeMore(t, 30)
	b.catchUp(t)

	// Etcd is slow, and then slower than all timeouts.
	s.tap.Delay(100 * time.Millisecond)
	b.writeMore(t, 30)
	b.catchUp(t)
	s.tap.Delay(5 * time.Second)
	b.writeMore(t, 30)
	s.tap.Delay(0)
	b.writeMore(t, 10)
	b.catchUp(t)
	stop()
	if b.answers.Load() < benchClients {
		t.Errorf("%d answers, %d refusals", b.answers.Load(), b.refusals.Load())
	}
	info, err := s.store.GetStateInfo(t.Context(), autumn)
	if err != nil || int64(len(info.Actions)) != b.written.Load() {
		t.Errorf("%d actions are kept (%v), and %d were acknowledged", len(info.Actions), err, b.written.Load())
	}
}

// fill writes to etcd until it takes nothing more.
func (s *storage) fill(t *testing.T) {
	t.Helper()
	for range 200 {
		if _, err := s.client.Put(t.Context(), "/elsewhere", strings.Repeat("x", 200_000)); err != nil {
			return
		}
	}
	t.Fatal("etcd does not fill up")
}

// makeSpace compacts and defragments etcd, so that it takes writes again.
func (s *storage) makeSpace(t *testing.T) {
	t.Helper()
	now, err := s.client.Get(t.Context(), "/elsewhere")
	if err == nil {
		_, err = s.client.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = s.client.Defragment(t.Context(), s.etcd.Endpoint())
	}
	if err == nil {
		_, err = s.client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
