package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// restartPause is the time between the end of a process and the start of the next: what a kubelet needs at least.
	restartPause = 500 * time.Millisecond
	// scrapeLimit is how long a replica may take to answer for its metrics.
	scrapeLimit = 5 * time.Second
)

// soakedPrograms are those that run in two replicas, of which one leads.
func soakedPrograms() []string { return []string{"monitor", "controller"} }

// replica is a replica whose process is started again whenever it has ended, as by a kubelet.
type replica struct {
	*installation.Replica

	program string
	orders  chan order
	// starts counts its processes. It is for those that have waited for keep.
	starts int
}

// order is a way to end a process.
type order struct {
	end  func() error
	done chan error
}

// keep starts the process, ends it as ordered, and starts it again whenever it has ended, until ctx ends. Then it asks the process
// to stop, which must succeed. That a process ends by itself, or does not start again, is no error here: its log says why.
func (r *replica) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		r.starts++
		if err := r.Start(ctx); err != nil {
			if r.starts == 1 {
				return err
			}
		} else if err := r.serve(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			_ = pause(ctx, restartPause) // The loop ends with ctx.
		}
	}
	return r.Stop()
}

// serve waits until the process has ended, or ctx does.
func (r *replica) serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.Exited():
		return r.Kill() // It only forgets the process.
	case o := <-r.orders:
		err := o.end()
		o.done <- err
		return err
	}
}

// order ends the process, when there is one.
func (r *replica) order(ctx context.Context, end func() error) error {
	o := order{end: end, done: make(chan error, 1)}
	select {
	case r.orders <- o:
		return <-o.done
	case <-ctx.Done():
		return fmt.Errorf("cannot end %s, which does not run: %w", r.Name, context.Cause(ctx))
	}
}

// metrics asks the process for its metrics.
func (r *replica) metrics(ctx context.Context) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeLimit)
	defer cancel()
	text, err := r.Text(ctx)
	if err != nil {
		return nil, err
	}
	return parseMetrics(strings.NewReader(text))
}

// leads reports whether the process that the metrics are of leads.
func (m metrics) leads() bool { return m.sum("leader_election_master_status") > 0 }

// awaitLeader waits until a replica of a program leads.
func (s *soaking) awaitLeader(ctx context.Context, program string) (leader *replica, err error) {
	err = poll(ctx, "a "+program+" to lead", func(ctx context.Context) (bool, error) {
		for _, r := range s.replicas {
			if r.program != program {
				continue
			}
			if m, err := r.metrics(ctx); err == nil && m.leads() {
				leader = r
			}
		}
		return leader != nil, nil
	})
	return leader, err
}
