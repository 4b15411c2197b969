package commands

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

// outputBuffer is the output of a command so far.
type outputBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	wrote  chan struct{}
}

func newOutputBuffer() *outputBuffer { return &outputBuffer{wrote: make(chan struct{}, 1)} }

func (p *outputBuffer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.wrote <- struct{}{}:
	default:
	}
	return p.buffer.Write(data)
}

func (p *outputBuffer) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buffer.String()
}

// await waits until a text has been printed n times.
func (p *outputBuffer) await(t *testing.T, n int, text string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for strings.Count(p.text(), text) < n {
		select {
		case <-p.wrote:
		case <-late:
			t.Fatalf("%q is not printed %d times:\n%s", text, n, p.text())
		}
	}
}

// follower is a running command with --watch.
type follower struct {
	out, errOut *outputBuffer
	cancel      context.CancelFunc
	ended       chan error
}

// watchStatus runs the command with --watch until it ends, it is stopped, or the test ends.
func watchStatus(t *testing.T, server string, args ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w := &follower{out: newOutputBuffer(), errOut: newOutputBuffer(), cancel: cancel, ended: make(chan error, 1)}
	root := NewCommand()
	root.SetArgs(append([]string{"status", "--server", server, "-w"}, args...))
	root.SetOut(w.out)
	root.SetErr(w.errOut)
	go func() { w.ended <- root.ExecuteContext(ctx) }()
	return w
}

// end waits until the command has ended, and returns its error.
func (w *follower) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("the command does not end:\n%s%s", w.out.text(), w.errOut.text())
		return nil
	}
}

// stop interrupts the command, which is no error.
func (w *follower) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	if err := w.end(t); err != nil {
		t.Errorf("it was interrupted, which is no error: %v", err)
	}
}

func TestStatusFollowsScopes(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	all, single, lines, texts := watchStatus(t, h.URL), watchStatus(t, h.URL, "vfw"), watchStatus(t, h.URL, "-o", "json"), watchStatus(t, h.URL, "-o", "yaml")
	out, one, events, documents := all.out, single.out, lines.out, texts.out
	out.await(t, 1, "shop        web    healthy     Ready")
	one.await(t, 1, "HealthScope default/vfw: unhealthy")
	events.await(t, 1, `{"event":"snapshot","data":{"items":[`)
	documents.await(t, 1, "---\ndata:\n  items:\n")
	h.set("default", "vfw", func() { h.scopes[0] = scopeIn("default", "vfw", true) })
	out.await(t, 1, "default     vfw    healthy   Ready")
	one.await(t, 1, "HealthScope default/vfw: healthy")
	events.await(t, 1, `{"event":"scope","data":{"name":"vfw"`)
	documents.await(t, 1, "event: snapshot\n---\ndata:\n  clustersReachable:")
	h.set("back", "new", func() { h.scopes = append(h.scopes, scopeIn("back", "new", true)) })
	out.await(t, 1, "back        new    healthy   Ready")
	h.set("default", "vfw", func() { h.scopes = h.scopes[1:] })
	one.await(t, 1, "HealthScope vfw does not exist any more")
	events.await(t, 1, `{"event":"deleted","data":{"name":"vfw","namespace":"default"}}`)
	out.await(t, 4, "NAMESPACE")
	pages := strings.Split(out.text(), "\n\n")
	if last := pages[len(pages)-1]; strings.Contains(last, "vfw") || !strings.Contains(last, "back") {
		t.Errorf("want the list without vfw, got:\n%s", last)
	}

	// After a broken connection, the client reconnects and receives a new snapshot.
	h.CloseClientConnections()
	out.await(t, 5, "NAMESPACE")
	all.errOut.await(t, 1, "trying again in 1s")
	single.errOut.await(t, 1, "trying again in 1s")
	all.stop(t)
	lines.stop(t)
	texts.stop(t)
	if err := single.end(t); exitCode(err) != exitUnknown || !strings.Contains(err.Error(), "Not Found (404)") {
		t.Errorf("want the end of what follows a scope that is not there, got: %v", err)
	}
}

// Only what changes by itself is left out of the comparison of two documents: not a label or a text that looks like it.
func TestAgesAreNoChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const before = `{"health":{"state":"Ready","age":59},"last-seen":"2026-01-02T03:04:04Z","labels":{"age":"5"},"message":"\"age\":5"}`
	for text, c := range map[string]struct {
		by   string
		same bool
	}{
		`"age":59`:               {`"age":-2`, true},
		`"2026-01-02T03:04:04Z"`: {`"2026-01-02T03:03:00Z"`, true},
		`T03:04:04Z`:             {`T03:00:00Z`, false}, // More than two minutes.
		`"age":"5"`:              {`"age":"6"`, false},
		`\"age\":5`:              {`\"age\":6`, false},
		`"Ready"`:                {`"Failed"`, false},
	} {
		after := strings.Replace(before, text, c.by, 1)
		if same := withoutAges([]byte(before), now) == withoutAges([]byte(after), now); after == before || same != c.same {
			t.Errorf("%s after %s: got %v", c.by, text, same)
		}
	}
}

func TestStatusFollowsDocuments(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	small := watchStatus(t, h.URL, autumn, "--interval", "1s", "-o", "json")
	plain := watchStatus(t, h.URL, autumn, "--interval", "1s", "-o", "json", "--health=false", "--detail", "all")
	out, rsync := small.out, plain.out
	out.await(t, 1, `"health":{"state":"Unknown"`)
	rsync.await(t, 1, `"rsync-status"`)
	h.set("", "", func() { h.state = healthscope.Failed })
	out.await(t, 1, `"health":{"state":"Failed"`)
	h.set("", "", func() { h.silent = time.Hour })
	out.await(t, 3, `"project":"retail"`)
	rsync.await(t, 2, `"project":"retail"`)
	h.mu.Lock()
	tagged := slices.ContainsFunc(h.requests, func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" })
	h.mu.Unlock()
	if !tagged {
		t.Error("no request asks whether the answer is still the same")
	}
	small.stop(t)
	plain.stop(t)
	if lines := strings.Count(out.text(), "\n"); lines != 3 || small.errOut.text() != "" {
		t.Errorf("only changes are printed, ages are none unless they are great: %d lines, %s\n%s", lines, small.errOut.text(), out.text())
	}
	if lines := strings.Count(rsync.text(), "\n"); lines != 2 {
		t.Errorf("nothing has changed but that it is old, and it prints %d lines", lines)
	}
}

func TestStatusEndsIfARetryCannotSucceed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("the server has ended the stream"), false},
		{responseError{0, "a problem without a status"}, true},
		{responseError{http.StatusNoContent, "no status REST API"}, true},
		{responseError{http.StatusFound, "elsewhere"}, true},
		{responseError{http.StatusBadRequest, "bad"}, true},
		{responseError{http.StatusGone, "gone"}, true},
		{responseError{http.StatusRequestTimeout, "slow"}, false},
		{responseError{http.StatusTooManyRequests, "busy"}, false},
		{responseError{http.StatusServiceUnavailable, "away"}, false},
		{apierrors.NewUnauthorized("who is it"), true},
		{errors.Wrap(apierrors.NewForbidden(scopesResource.GroupResource(), "web", errors.New("no right")), "cannot find the controller"), true},
		{apierrors.NewNotFound(scopesResource.GroupResource(), "web"), true},
		{apierrors.NewResourceExpired("too old resource version"), false},
		{apierrors.NewTimeoutError("too large resource version", 1), false},
		{apierrors.NewBadRequest("the agent of the cluster is not connected"), false},
		{errors.Wrap(printError{io.ErrClosedPipe}, "event"), true},
	} {
		if got := isFinal(c.err); got != c.want {
			t.Errorf("%v is final: %t, want %t", c.err, got, c.want)
		}
	}
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	const text = "retry: 2000\n\n: heartbeat\n\nevent: scope\ndata: {\"a\":\ndata: 1}\n\nevent: empty\n\ndata:plain\nid: 7\n\nevent: cut\ndata: off\n"
	var got []string
	lines := 0
	err := readEvents(strings.NewReader(text), func() { lines++ }, func(event string, data []byte) error {
		got = append(got, event+"="+string(data))
		return nil
	})
	if want := []string{"scope={\"a\":\n1}", "=plain"}; err != nil || !cmp.Equal(got, want) || lines != strings.Count(text, "\n") {
		t.Errorf("want %q, got %q after %d lines, %v", want, got, lines, err)
	}
}

// TestReadEventsOfAnyText: readEvents reads any text to its end, and returns no data that is not in it.
func TestReadEventsOfAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"event", "data", ":", " ", "\n", "\r", "x", "\x00", "é"})).Draw(t, "text"), "")
		err := readEvents(strings.NewReader(text), func() {}, func(_ string, data []byte) error {
			if len(data) > len(text) {
				t.Fatalf("%q has more than %q", data, text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
