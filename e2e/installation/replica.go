package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/healthscope/healthscope/e2e/process"
)

// Replica is one of several processes of the same program, of which one leads. The replicas have the rights of the same
// ServiceAccount, but their own ports, configuration and log. A Replica belongs to one goroutine, except that others may call
// Text and LogPath.
type Replica struct {
	// Name is the program's name with the number of the replica, such as controller-2.
	Name string

	own              *Installation
	program, metrics string
}

// Replica prepares a replica of a program, monitor or controller, without starting it. number distinguishes the replicas of a
// program.
func (i *Installation) Replica(ctx context.Context, program string, number int) (*Replica, error) {
	name := program + "-" + strconv.Itoa(number)
	own := &Installation{cp: i.cp, options: i.options, inventory: i.inventory, AAI: i.AAI, Control: i.Control}
	own.options.Dir = i.path(name)
	if err := os.Mkdir(own.options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
	}
	if err := own.prepareFor(ctx, program); err != nil {
		return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
	}
	// The links in A&AI lead to a Service for all replicas, so their URL is the same in each replica.
	own.API, own.GuardedAPI = i.API, i.GuardedAPI
	for _, file := range []string{"aai-user", "aai-password"} {
		if err := os.Symlink(i.path(file), own.path(file)); err != nil {
			return nil, fmt.Errorf("cannot prepare %s: %w", name, err)
		}
	}
	r := &Replica{Name: name, own: own, program: program, metrics: own.Metrics}
	if program == "monitor" {
		r.metrics = own.MonitorMetrics
	}
	return r, nil
}

// process returns a pointer to the replica's process, which is nil if there is none.
func (r *Replica) process() **process.Process {
	if r.program == "monitor" {
		return &r.own.monitor
	}
	return &r.own.controller
}

// Start starts the replica, and returns when it is ready. A replica can be ready without leading.
func (r *Replica) Start(ctx context.Context) error {
	if r.program == "monitor" {
		return r.own.StartMonitor(ctx)
	}
	return r.own.StartController(ctx)
}

// Exited returns a channel that is closed when the replica has exited. The replica must have been started.
func (r *Replica) Exited() <-chan struct{} { return (*r.process()).Exited() }

// Stop stops the replica as Kubernetes does, first with SIGTERM. It is no error if the replica has not been started or has been
// killed.
func (r *Replica) Stop() error { return stop(r.process()) }

// Kill kills the replica with SIGKILL. It is no error if the replica has ended already.
func (r *Replica) Kill() error { return kill(r.process()) }

// Text returns the replica's metrics, as callers without a token get them.
func (r *Replica) Text(ctx context.Context) (string, error) {
	status, text, err := r.own.Text(ctx, r.metrics)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the answer is %d", status)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the metrics of %s: %w", r.Name, err)
	}
	return text, nil
}

// LogPath returns the path of the replica's log, to which all of its processes write.
func (r *Replica) LogPath() string { return r.own.LogPath(r.program) }

// LogTails returns the end of the replica's log; empty when it has no process.
func (r *Replica) LogTails() string { return r.own.LogTails() }
