package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// statusClients is how many clients ask at a time, each as soon as it has its answer.
	statusClients = 20
	// statusTime is how long they ask for a document.
	statusTime = 3 * time.Second
)

// statusLoad is what came of clients that asked for a document.
type statusLoad struct {
	took   []time.Duration
	length time.Duration
	size   int
	cpu    time.Duration
}

// load has clients ask for the document of a query, for a time. The document must be right in the beginning and in the end; one
// without ages must be the same in between.
func (b *bench) load(ctx context.Context, query string, same bool) (statusLoad, error) {
	reference, err := b.ask(ctx, query)
	if err != nil {
		return statusLoad{}, err
	}
	l := statusLoad{size: len(reference)}
	pid := b.hs.PIDs()["controller"]
	before, err := usageOf(pid)
	if err != nil {
		return l, err
	}
	begin := time.Now()
	until := begin.Add(b.options.scaledTime(statusTime, time.Second))
	var mu sync.Mutex
	group, asking := errgroup.WithContext(ctx)
	for range statusClients {
		group.Go(func() error {
			took, err := b.askUntil(asking, until, query, reference, same)
			mu.Lock()
			defer mu.Unlock()
			l.took = append(l.took, took...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return l, err
	}
	l.length = time.Since(begin)
	after, err := usageOf(pid)
	if err != nil {
		return l, err
	}
	l.cpu = after.cpu - before.cpu
	_, err = b.ask(ctx, query)
	return l, err
}

// askUntil asks one question after the other until a time, and returns how long each answer took.
func (b *bench) askUntil(ctx context.Context, until time.Time, query string, reference []byte, same bool) ([]time.Duration, error) {
	var took []time.Duration
	var body bytes.Buffer
	for begin := time.Now(); begin.Before(until); begin = time.Now() {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.hs.API+groupPath+"?"+query, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("cannot ask %q: %w", query, err)
		}
		if err := b.status.do(r, &body); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		if same && !bytes.Equal(body.Bytes(), reference) {
			return nil, fmt.Errorf("the answer to %q has changed, and nothing else has: %s", query, firstDifference(reference, body.Bytes()))
		}
	}
	return took, nil
}

// firstDifference shows where two documents differ first.
func firstDifference(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(at-40, 0)
	return fmt.Sprintf("from %.80q to %.80q", a[from:], b[from:])
}

// figures are those of a load, with what p95 is to be at most, in milliseconds.
func (l statusLoad) figures(name string, target *float64) []figure {
	answers := float64(len(l.took))
	return []figure{
		{Name: name + ": p50 ms", Value: milliseconds(percentile(l.took, 50))},
		{Name: name + ": p95 ms", Value: milliseconds(percentile(l.took, 95)), Target: target},
		{Name: name + ": answers/s", Value: answers / l.length.Seconds()},
		{Name: name + ": controller CPU ms per answer", Value: milliseconds(l.cpu) / answers},
		{Name: name + ": KiB", Value: float64(l.size) / 1024},
	}
}

// measureLoads measures a query for each type of document, with what p95 is to be at most, in milliseconds.
func (b *bench) measureLoads(ctx context.Context, output string, target float64) ([]figure, error) {
	var figures []figure
	for _, kind := range []string{"rsync", "cluster"} {
		l, err := b.load(ctx, "type="+kind+"&output="+output, true)
		if err != nil {
			return nil, err
		}
		figures = append(figures, l.figures("type="+kind, &target)...)
	}
	return figures, nil
}

func measureStatusSummary(ctx context.Context, b *bench) ([]figure, error) {
	return b.measureLoads(ctx, "summary", 5)
}

// measureStatusAll also reads the same document once in EMCO's way, with nobody else asking.
func measureStatusAll(ctx context.Context, b *bench) ([]figure, error) {
	figures, err := b.measureLoads(ctx, "all", 50)
	if err != nil {
		return nil, err
	}
	cost, err := b.status.inEMCOsWay(ctx, b.options.scaledTime(emcoTime, time.Second))
	return append(figures,
		figure{Name: "EMCO's way: requests to etcd", Value: cost.requests, Peer: "48768"},
		figure{Name: "EMCO's way: MiB read from etcd", Value: cost.bytes / (1 << 20), Peer: "28"},
		figure{Name: "EMCO's way: ms for one answer", Value: milliseconds(cost.took), Peer: "6600 (storage in memory)"},
		figure{Name: "EMCO's way: % measured", Value: 100 * cost.share},
	), err
}

// measureStatusHealth measures documents that say how everything fares, which are made anew for each answer.
func measureStatusHealth(ctx context.Context, b *bench) ([]figure, error) {
	var figures []figure
	for _, query := range []string{"output=summary&health=true", "output=small"} {
		l, err := b.load(ctx, query, false)
		if err != nil {
			return nil, err
		}
		figures = append(figures, l.figures(query, nil)...)
	}
	return figures, nil
}
