package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestResultOf checks that only unexpected failures are errors, which are logged with a stack trace and retried with growing pauses.
func TestResultOf(t *testing.T) {
	t.Parallel()
	strange := errors.New("strange")
	for name, c := range map[string]struct {
		err       error
		want      ctrl.Result
		wantError bool
	}{
		"done":                       {},
		"the bundle moved meanwhile": {err: fmt.Errorf("cannot read: %w", errMoved)},
		"written to in between":      {err: fmt.Errorf("cannot save: %w", appcontext.ErrConflict), want: ctrl.Result{RequeueAfter: conflictRetry}},
		"gone in between":            {err: fmt.Errorf("cannot save: %w", appcontext.ErrNotFound), want: ctrl.Result{RequeueAfter: conflictRetry}},
		"etcd is unavailable":        {err: fmt.Errorf("cannot save: %w", appcontext.ErrUnavailable), want: ctrl.Result{RequeueAfter: etcdRetry}},
		"no place can be so called":  {err: fmt.Errorf("cannot find: %w", appcontext.ErrInvalid)},
		"too large":                  {err: fmt.Errorf("cannot save: %w", appcontext.ErrTooLarge), wantError: true},
		"unexpected":                 {err: strange, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reconciler{counters: newCounters()}
			got, err := r.resultOf(c.err, appcontext.AppInCluster{ContextID: "1", App: "a", Cluster: "p+c"}, logr.Discard())
			if (err != nil) != c.wantError {
				t.Errorf("the error is %v, want one: %v", err, c.wantError)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOutageIsLoggedOnce has results of requests one after the other, each with the line in the log that it leads to.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	const lost, back = "Etcd is unavailable; retrying", "Etcd is available again"
	unavailable, denied := fmt.Errorf("cannot save: %w", appcontext.ErrUnavailable), fmt.Errorf("cannot save: %w", appcontext.ErrDenied)
	var got []string
	logger := funcr.NewJSON(func(line string) { got = append(got, line) }, funcr.Options{})
	o := &outage{}
	for n, step := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {unavailable, lost}, {unavailable, ""}, {denied, lost}, {denied, ""}, {nil, back}, {nil, ""},
		{errors.Join(unavailable, denied), lost}, {errors.Join(unavailable, denied), ""}, {errMoved, back},
	} {
		got = nil
		o.update(step.err, logger)
		if len(got) > 1 || (len(got) == 1) != (step.want != "") || !strings.Contains(strings.Join(got, ""), step.want) {
			t.Errorf("result %d, %v: logged %q, want %q", n, step.err, got, step.want)
		}
	}
}

func TestLogTakeover(t *testing.T) {
	t.Parallel()
	states := []state{stateSaved, stateYielded, statePending, stateAbsent}
	for _, before := range states {
		for _, now := range states {
			want := 0
			if (now == stateYielded && before != now) || (before == stateYielded && now == stateSaved) {
				want = 1
			}
			lines := 0
			logTakeover(funcr.New(func(string, string) { lines++ }, funcr.Options{}), appcontext.AppInCluster{}, before, now)
			if lines != want {
				t.Errorf("from %q to %q: %d lines, want %d", before, now, lines, want)
			}
		}
	}
}

// blockedReader is an API server that does not answer.
type blockedReader struct {
	client.Reader

	asked chan struct{}
}

func (b blockedReader) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	close(b.asked)
	<-ctx.Done()
	return ctx.Err()
}

// TestMetricsDoNotWaitForTheAPIServer collects the metrics while the Lease is being read.
func TestMetricsDoNotWaitForTheAPIServer(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	r := &reconciler{live: blockedReader{asked: asked}, counters: newCounters()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = r.identity(ctx) }()
	<-asked
	collected := make(chan struct{})
	go func() {
		r.Collect(make(chan prometheus.Metric, 100))
		close(collected)
	}()
	select {
	case <-collected:
	case <-time.After(5 * time.Second):
		t.Error("the metrics wait for the Lease")
	}
}
