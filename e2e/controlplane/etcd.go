package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
	"github.com/healthscope/healthscope/e2e/process"
)

// EtcdOptions say how StartEtcd starts etcd. The zero value is an etcd without TLS that does not wait for the disk.
type EtcdOptions struct {
	// Log receives a line for each start and stop. The default is nowhere.
	Log io.Writer
	// CertFile, KeyFile and ClientCAFile make etcd speak TLS with this certificate, and take clients only whose certificate
	// is from this authority. All or none are set.
	CertFile, KeyFile, ClientCAFile string
	// Arguments are further arguments of etcd.
	Arguments []string
}

// Etcd is an etcd of one member, without an API server, on a loopback port of its own. Its methods are safe for
// concurrent use.
type Etcd struct {
	options  EtcdOptions
	programs assets.Set
	work     *workdir
	// port is where clients connect, health where etcd says without TLS whether it is ready.
	port, health *process.Port

	// mu guards what follows.
	mu      sync.Mutex
	janitor *janitor
	process *process.Process
	stopped bool
}

// StartEtcd starts an etcd and returns when it takes requests. ctx bounds the start only; etcd runs until Stop. Errors are
// those of Start: nothing is left behind, and assets.ErrMissing is wrapped when the program is missing.
func StartEtcd(ctx context.Context, options EtcdOptions) (*Etcd, error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	if set := options.CertFile != ""; set != (options.KeyFile != "") || set != (options.ClientCAFile != "") {
		return nil, errors.New("cannot start etcd: CertFile, KeyFile and ClientCAFile must all be set, or none")
	}
	programs, err := assets.Locate()
	if err == nil {
		err = programs.Require(assets.Etcd)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start etcd: %w", err)
	}
	sweep(os.TempDir(), time.Now())
	e := &Etcd{options: options, programs: programs}
	if err := e.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start etcd: %w", err), e.Stop())
	}
	if err := e.Start(ctx); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

func (e *Etcd) prepare() error {
	var err error
	if e.work, err = openWorkdir("", false); err != nil {
		return err
	}
	if e.port, err = process.ReservePort(0); err != nil {
		return err
	}
	e.health, err = process.ReservePort(0)
	return err
}

// Endpoint is the URL for clients. It stays the same over Kill and Start.
func (e *Etcd) Endpoint() string {
	scheme := "http"
	if e.options.CertFile != "" {
		scheme = "https"
	}
	return scheme + "://127.0.0.1:" + strconv.Itoa(e.port.Number)
}

// Start starts etcd again after Kill, at the same endpoint and with the same data, and returns when it takes requests. It
// does nothing if etcd runs.
func (e *Etcd) Start(ctx context.Context) error {
	ctx, cancel := bounded(ctx, startTimeout)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return errors.New("cannot start etcd: it is stopped")
	}
	if e.process != nil && e.process.Running() {
		return nil
	}
	fmt.Fprintf(e.options.Log, "etcd: starting at %s\n", e.Endpoint())
	if err := e.launch(); err != nil {
		return fmt.Errorf("cannot start etcd: %w", err)
	}
	if err := e.awaitReady(ctx); err != nil {
		return fmt.Errorf("cannot start etcd: %w", err)
	}
	return nil
}

// launch starts the process, with a janitor of its own: a janitor watches one process group.
func (e *Etcd) launch() error {
	if e.janitor != nil {
		if err := e.janitor.dismiss(); err != nil {
			return err
		}
	}
	var err error
	if e.janitor, err = startJanitor(e.work.path); err != nil {
		return err
	}
	args := append(e.arguments(), e.options.Arguments...)
	e.process, err = process.Start(process.Spec{
		Name: assets.Etcd, Path: e.programs.Path(assets.Etcd), Args: args, Dir: e.work.path, LogPath: e.work.file(logDir, assets.Etcd+".log"),
	})
	if err != nil {
		return err
	}
	return e.janitor.watch(e.process.PID())
}

func (e *Etcd) arguments() []string {
	args := []string{
		"--name=etcd",
		"--data-dir=" + e.work.file(etcdDir),
		"--listen-client-urls=" + e.Endpoint(),
		"--advertise-client-urls=" + e.Endpoint(),
		"--listen-metrics-urls=" + e.healthURL(),
		"--listen-peer-urls=" + etcdPeerSocket,
		"--initial-advertise-peer-urls=" + etcdPeerSocket,
		"--initial-cluster=etcd=" + etcdPeerSocket,
		"--socket-reuse-port",     // With our own reservations of the ports.
		"--heartbeat-interval=10", // See startStorage.
		"--election-timeout=50",
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
	if e.options.CertFile != "" {
		args = append(args, "--cert-file="+e.options.CertFile, "--key-file="+e.options.KeyFile,
			"--trusted-ca-file="+e.options.ClientCAFile, "--client-cert-auth")
	}
	return args
}

func (e *Etcd) healthURL() string {
	return "http://127.0.0.1:" + strconv.Itoa(e.health.Number)
}

// awaitReady waits until /readyz says so. Nothing announces it, so it has to be asked for.
func (e *Etcd) awaitReady(ctx context.Context) error {
	client := &http.Client{Timeout: readyTimeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	last := errors.New("not asked yet")
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		if !e.process.Running() {
			return false, e.process.Failure()
		}
		last = askReady(ctx, client, e.healthURL()+"/readyz")
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w: %w; the end of its log:\n%s", context.Cause(ctx), last, e.process.LogTail())
	}
	return err
}

// Kill ends etcd at once, as in an outage: connections break and new ones are refused. It does nothing if etcd does not run.
func (e *Etcd) Kill() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kill()
}

func (e *Etcd) kill() error {
	if e.process == nil || !e.process.Running() {
		return nil
	}
	fmt.Fprintln(e.options.Log, "etcd: killing")
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
	if e.janitor != nil {
		errs = append(errs, e.janitor.dismiss())
	}
	for _, port := range []*process.Port{e.port, e.health} {
		if port != nil {
			errs = append(errs, port.Release())
		}
	}
	if e.work != nil {
		errs = append(errs, e.work.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot stop etcd: %w", err)
	}
	return nil
}
