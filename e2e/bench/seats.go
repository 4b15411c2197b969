package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// restartPause is the time between the end of a process and the start of the next: what a kubelet needs at least.
	restartPause = 500 * time.Millisecond
	// seatReplicas is how many replicas of each program there are.
	seatReplicas = 2
)

// seat is the place of a replica: a process that is started again whenever it has ended, as by a kubelet.
type seat struct {
	*installation.Replica

	program string
	// orders are what is to be done to the process; who gives one waits until it is done.
	orders chan order
	// starts counts its processes, and ended those that have ended by themselves. Both are for those who have waited for keep.
	starts, ended int
}

// order is a way to end a process.
type order struct {
	end  func() error
	done chan error
}

// takeSeats prepares the replicas of all programs.
func (s *soaking) takeSeats(ctx context.Context) error {
	for _, program := range soakedPrograms() {
		for n := range seatReplicas {
			r, err := s.hs.Replica(ctx, program, n+1)
			if err != nil {
				return err
			}
			s.seats = append(s.seats, &seat{Replica: r, program: program, orders: make(chan order)})
		}
	}
	return nil
}

// keep starts the seat's process, does as ordered, and starts it again whenever it has ended, until its context ends. Then it
// asks the process to end, which must succeed. That a process ends by itself, or does not start again, is no error here: its log says why.
func (s *seat) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		s.starts++
		if err := s.Start(ctx); err != nil {
			if s.starts == 1 {
				return err
			}
			s.ended++
		} else if err := s.serve(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			_ = pause(ctx, restartPause) // When it is time to end, the loop sees it.
		}
	}
	return s.Stop()
}

// serve waits until the process has ended, one way or the other, or the context does.
func (s *seat) serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Exited():
		s.ended++
		return s.Kill() // It only forgets the process.
	case o := <-s.orders:
		err := o.end()
		o.done <- err
		return err
	}
}

// order has the process of the seat end. It fails when the seat is without a process until the context ends.
func (s *seat) order(ctx context.Context, end func() error) error {
	o := order{end: end, done: make(chan error, 1)}
	select {
	case s.orders <- o:
		return <-o.done
	case <-ctx.Done():
		return fmt.Errorf("cannot end %s, which does not run: %w", s.Name, context.Cause(ctx))
	}
}

// state is what a process says of itself.
type state struct {
	// life tells it apart from the processes before it: the time of its start, in seconds since 1970.
	life float64
	// leads says whether it is the replica that leads.
	leads  bool
	values map[string]float64
}

// state asks the seat's process for its metrics; ok is false when it has none, or none that answers.
func (s *seat) state(ctx context.Context) (_ state, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, scrapeLimit)
	defer cancel()
	text, err := s.Text(ctx)
	if err != nil {
		return state{}, false
	}
	return state{
		life: sum(text, "process_start_time_seconds"), leads: sum(text, "leader_election_master_status") > 0,
		values: map[string]float64{
			figureHeap: mebibytes(int64(liveHeap(text))), figureMemory: mebibytes(int64(sum(text, "process_resident_memory_bytes"))),
			figureGoroutines: sum(text, "go_goroutines"), figureDescriptors: sum(text, "process_open_fds"),
		},
	}, true
}

// liveHeap is what the last garbage collection left, without what has been allocated since: the collector aims at starting
// again when the heap has grown by GOGC percent.
func liveHeap(text string) float64 {
	return sum(text, "go_memstats_next_gc_bytes") * 100 / (100 + sum(text, "go_gc_gogc_percent"))
}

// errNoLeader means that no replica of a program leads.
var errNoLeader = errors.New("no replica leads")

// leader returns the seat of a program whose process leads now.
func (s *soaking) leader(ctx context.Context, program string) (*seat, error) {
	for _, one := range s.seats {
		if one.program != program {
			continue
		}
		if st, ok := one.state(ctx); ok && st.leads {
			return one, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", program, errNoLeader)
}
