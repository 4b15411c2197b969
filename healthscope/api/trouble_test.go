package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// scenario is a group with a writer. The writer writes a number, in one transaction, as the state of the context and as the last
// action.
type scenario struct {
	*storage

	h       http.Handler
	ac      *appcontext.AppContext
	root    appcontext.Handle
	written atomic.Int64
	// answers is the number of documents that readers got, and refusals the number of responses with 503.
	answers, refusals atomic.Int64
}

func newScenario(t *testing.T, s *storage) *scenario {
	t.Helper()
	b := &scenario{storage: s, ac: appcontext.NewAppContext(s.store)}
	b.ac.InitAppContext()
	var err error
	if b.root, err = b.ac.CreateCompositeApp(t.Context()); err == nil {
		err = b.writeNumber(t.Context(), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.h = NewHandler(Options{Documents: NewDocuments(DocumentsOptions{Contexts: s.cache, Clusters: memoryClusters{}, Policy: healthscope.DefaultPolicy()})})
	return b
}

func (b *scenario) recordOf(n int64) appcontext.Record {
	return appcontext.Record{
		Subject: appcontext.GroupRef("retail", "shop", "v2", "autumn"),
		Action:  appcontext.Action{State: appcontext.ActionState(strconv.FormatInt(n, 10)), ContextID: b.ac.ID(), Time: time.UnixMilli(n), Revision: n},
	}
}

// writeNumber writes a number as the state of the context, and records it as an action.
func (b *scenario) writeNumber(ctx context.Context, n int64) error {
	state := appcontext.Write{Handle: b.root.Level("status"), Value: map[string]string{"Status": strconv.FormatInt(n, 10)}}
	return b.store.WriteLevels(ctx, b.ac.ID(), []appcontext.Write{state}, appcontext.Condition{}, b.recordOf(n))
}

// write writes the next number.
func (b *scenario) write(ctx context.Context) error {
	n := b.written.Load() + 1
	err := b.writeNumber(ctx, n)
	if err == nil {
		b.written.Store(n)
	}
	return err
}

// read requests the status, and returns the number in the response (n), which is 0 for an error, and a description of what is
// wrong with the response; empty if nothing is. A document must show one revision of etcd, and an error must have its reason.
func (b *scenario) read(ctx context.Context, t *testing.T, query string) (n int64, wrong string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+autumnURL+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.RequestURI = r.URL.RequestURI()
	got := serve(b.h, r)
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
				n, wrong := b.read(context.WithoutCancel(ctx), t, query)
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
		n, wrong := b.read(t.Context(), t, "")
		if wrong != "" {
			t.Fatal(wrong)
		}
		if n == b.written.Load() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the answer shows %d, and %d was written", n, b.written.Load())
		}
	}
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

// TestASlowEtcdTearsNothing asserts that while etcd is slow, even slower than all timeouts, each response is a document of one
// revision or an error with the cause, and that the documents are current again when etcd is no longer slow.
func TestASlowEtcdTearsNothing(t *testing.T) {
	s := newStorage(t, time.Second, usualProof)
	b := newScenario(t, s)
	stop := b.crowd(t)
	defer stop()
	b.writeMore(t, 30)
	b.catchUp(t)
	for _, delay := range []time.Duration{100 * time.Millisecond, 5 * time.Second} {
		s.tap.Delay(delay)
		b.writeMore(t, 30)
		if delay < time.Second {
			b.catchUp(t)
		}
	}
	// The request for a context that has not been read yet gets an error.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+autumnURL+"?instance="+oldID, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.RequestURI = r.URL.RequestURI()
	if got := serve(b.h, r); got.Code != http.StatusServiceUnavailable && got.Code != http.StatusNotFound {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
	s.tap.Delay(0)
	b.writeMore(t, 10)
	b.catchUp(t)
	stop()
	if b.answers.Load() < benchClients {
		t.Errorf("%d answers, %d refusals", b.answers.Load(), b.refusals.Load())
	}
}

// TestAColdServerSaysThatEtcdIsSlow asserts that a request for a context that has not been read gets an error with the cause, and a
// response from the same server when etcd responds again.
func TestAColdServerSaysThatEtcdIsSlow(t *testing.T) {
	s := newStorage(t, 200*time.Millisecond, usualProof)
	b := newScenario(t, s)
	b.writeMore(t, 3)
	s.tap.Delay(time.Minute)
	if n, wrong := b.read(t.Context(), t, ""); n != 0 || wrong != "" || b.refusals.Load() != 1 {
		t.Errorf("answered with %d, %s; %d refusals", n, wrong, b.refusals.Load())
	}
	s.tap.Delay(0)
	b.catchUp(t)
}

// TestAFullEtcdIsReadAndTakesWritesAgain asserts that, while etcd is full, the writer gets ErrNoSpace and readers get documents,
// and that writes succeed without a restart when etcd has space again.
func TestAFullEtcdIsReadAndTakesWritesAgain(t *testing.T) {
	s := newStorage(t, 5*time.Second, usualProof, "--quota-backend-bytes=4000000")
	b := newScenario(t, s)
	stop := b.crowd(t)
	defer stop()
	b.writeMore(t, 30)
	var err error
	for n := 0; err == nil && n < 200; n++ {
		_, err = s.client.Put(t.Context(), "/elsewhere", strings.Repeat("x", 200_000))
	}
	if err == nil {
		t.Fatal("etcd does not fill up")
	}
	for range 20 {
		if err := b.write(t.Context()); !errors.Is(err, appcontext.ErrNoSpace) {
			t.Fatalf("a full etcd takes an action, or refuses it with: %v", err)
		}
	}
	b.catchUp(t)
	refused := b.refusals.Load()

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
	b.writeMore(t, 30)
	b.catchUp(t)
	stop()
	if refused != 0 {
		t.Errorf("%d readers were refused while etcd was full", refused)
	}
	info, err := s.store.GetStateInfo(t.Context(), appcontext.GroupRef("retail", "shop", "v2", "autumn"))
	if err != nil || int64(len(info.Actions)) != b.written.Load()+1 {
		t.Errorf("%d actions are kept (%v), and %d were acknowledged", len(info.Actions), err, b.written.Load()+1)
	}
}
