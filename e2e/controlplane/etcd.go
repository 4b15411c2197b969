package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

// EtcdOptions configures StartEtcd. The zero value is an etcd without TLS that does not wait for the disk.
type EtcdOptions struct {
	// Log receives a line for each start and stop. By default, these lines are discarded.
	Log io.Writer
	// CertFile, KeyFile and ClientCAFile make etcd serve TLS with this certificate, and accept only clients whose certificate
	// is signed by this authority. Either all or none are set.
	CertFile, KeyFile, ClientCAFile string
	// Arguments are additional arguments of etcd.
	Arguments []string
}

// Etcd is an etcd with one member and without an API server, on its own loopback port. Its methods are safe for
// concurrent use.
type Etcd struct {
	options EtcdOptions
	home    *home
	// port is the port for clients. On port health, etcd reports without TLS whether it is ready.
	port, health *process.Port

	// mu guards the fields below.
	mu      sync.Mutex
	process *process.Process
	stopped bool
}

// StartEtcd starts an etcd and returns when it accepts requests. ctx limits only the start; etcd runs until Stop. As with
// Start, a failure leaves nothing behind, and the error wraps assets.ErrMissing if the program is missing.
func StartEtcd(ctx context.Context, options EtcdOptions) (*Etcd, error) {
	h, err := newHome(options.Log, assets.Etcd)
	if err != nil {
		return nil, fmt.Errorf("cannot start etcd: %w", err)
	}
	e := &Etcd{options: options, home: h}
	if e.port, err = process.ReservePort(); err == nil {
		e.health, err = process.ReservePort()
	}
	if err == nil {
		err = e.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start etcd: %w", err), e.Stop())
	}
	return e, nil
}

// Endpoint returns the URL for clients. It stays the same after Kill and Start.
func (e *Etcd) Endpoint() string {
	scheme := "http"
	if e.options.CertFile != "" {
		scheme = "https"
	}
	return scheme + "://127.0.0.1:" + strconv.Itoa(e.port.Number)
}

// Start starts etcd again after Kill, at the same endpoint and with the same data. It returns when etcd accepts requests.
// It does nothing if etcd runs.
func (e *Etcd) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return errors.New("cannot start etcd: it is stopped")
	}
	if e.process != nil && e.process.Running() {
		return nil
	}
	fmt.Fprintf(e.home.log, "etcd: starting at %s\n", e.Endpoint())
	health := "http://127.0.0.1:" + strconv.Itoa(e.health.Number)
	args := append(etcdArguments(e.home, e.Endpoint()),
		"--listen-metrics-urls="+health,
		"--socket-reuse-port", // The Etcd holds reservations of the ports.
	)
	if e.options.CertFile != "" {
		args = append(args, "--cert-file="+e.options.CertFile, "--key-file="+e.options.KeyFile,
			"--trusted-ca-file="+e.options.ClientCAFile, "--client-cert-auth")
	}
	var err error
	if e.process, err = e.home.launch(assets.Etcd, append(args, e.options.Arguments...)...); err != nil {
		return err
	}
	return awaitReady(ctx, &http.Client{Transport: &http.Transport{}}, health+"/readyz", e.process)
}

// etcdArguments returns the arguments of an etcd that serves clients at url.
func etcdArguments(h *home, url string) []string {
	return []string{
		"--name=etcd",
		"--data-dir=" + h.file("etcd"),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=" + etcdPeerSocket,
		"--initial-advertise-peer-urls=" + etcdPeerSocket,
		"--initial-cluster=etcd=" + etcdPeerSocket,
		"--heartbeat-interval=50", // Milliseconds. A single member need not wait for the votes of others. With the defaults,
		"--election-timeout=250",  // it waits half a second. Shorter heartbeats would use more CPU all the time.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// Kill kills etcd, as in an outage: connections break and new ones are refused. It does nothing if etcd does not run.
func (e *Etcd) Kill() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kill()
}

func (e *Etcd) kill() error {
	if e.process == nil || !e.process.Running() {
		return nil
	}
	fmt.Fprintln(e.home.log, "etcd: killing")
	return e.process.Kill()
}

// Stop ends etcd and removes its data. A second Stop does nothing.
func (e *Etcd) Stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	e.stopped = true
	errs := []error{e.kill()}
	for _, port := range []*process.Port{e.port, e.health} {
		if port != nil {
			errs = append(errs, port.Release())
		}
	}
	if err := errors.Join(append(errs, e.home.close())...); err != nil {
		return fmt.Errorf("cannot stop etcd: %w", err)
	}
	return nil
}
