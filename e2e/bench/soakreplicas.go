package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// restartPause is the time between the end of a process and the start of the next: the minimum that a kubelet needs.
	restartPause = 500 * time.Millisecond
	// scrapeLimit is the timeout of a request for the metrics of a replica.
	scrapeLimit = 5 * time.Second
)

// soakedPrograms returns the programs that run in two replicas, of which one leads.
func soakedPrograms() []string { return []string{"monitor", "controller"} }

// replica is a replica whose process is started again after every end, as by a kubelet.
type replica struct {
	*installation.Replica

	program string
	orders  chan order
	// starts is the number of starts. Read it only after keep has returned.
	starts int
}

// order is a way to end a process.
type order struct {
	end  func() error
	done chan error
}

// keep starts the process, ends it as ordered, and starts it again after every end, until ctx ends. Then it asks the process to
// stop, which must succeed. It returns no error when the process ends by itself or does not start again: the log has the reason.
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
			_ = pause(ctx, restartPause) // The loop condition checks ctx.
		}
	}
	return r.Stop()
}

// serve waits until the process has ended or ctx ends, or ends the process as ordered.
func (r *replica) serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.Exited():
		return r.Kill() // The process has ended. Kill only forgets it.
	case o := <-r.orders:
		err := o.end()
		o.done <- err
		return err
	}
}

// order ends the process. It waits until a process runs.
func (r *replica) order(ctx context.Context, end func() error) error {
	o := order{end: end, done: make(chan error, 1)}
	select {
	case r.orders <- o:
		return <-o.done
	case <-ctx.Done():
		return fmt.Errorf("cannot end %s, which does not run: %w", r.Name, context.Cause(ctx))
	}
}

// metrics reads the metrics of the process.
func (r *replica) metrics(ctx context.Context) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeLimit)
	defer cancel()
	text, err := r.Text(ctx)
	if err != nil {
		return nil, err
	}
	return parseMetrics(strings.NewReader(text))
}

// leads reports whether the process with these metrics leads.
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
