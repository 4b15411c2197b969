package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// waitLimit bounds every wait for something to come true.
	waitLimit = 3 * time.Minute
	// requestLimit bounds a request of the load generator.
	requestLimit = time.Minute
	// inventoryNamespace is the namespace whose resources go to A&AI.
	inventoryNamespace = "bench-aai"
	// namespaces is the number of namespaces that applications, or scopes, are spread over.
	namespaces = 10
)

// started is the time at which everything here has started, as the objects say.
var started = time.Now().Truncate(time.Second)

// plane is a control plane with HealthScope on it, and the load generator's clients.
type plane struct {
	options options
	log     io.Writer
	cp      *controlplane.ControlPlane
	hs      *installation.Installation
	tap     *tap
	config  *rest.Config
	client  client.Client
	audit   *auditLog
	bundles *board[*bundleView]
	scopes  *board[*scopeView]
	floor   *floor

	// stop ends the watches, running is done when they have ended.
	stop    context.CancelFunc
	running sync.WaitGroup
	// closers undo what has been done, the last first.
	closers []func() error
}

// silence tells controller-runtime that nobody listens, else it complains that it has no logger.
var silence = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

// openPlane starts everything but monitor and controller. The caller must close the plane, also when it fails.
func openPlane(ctx context.Context, o options, log io.Writer) (*plane, error) {
	p := &plane{options: o, log: log, bundles: newBoard[*bundleView]("bundles"), scopes: newBoard[*scopeView]("scopes")}
	silence()
	dir, err := p.directory()
	if err != nil {
		return p, err
	}
	p.logf("starting a control plane and A&AI; logs are in %s", dir)
	if p.cp, err = controlplane.Start(ctx, controlplane.Options{Name: "bench", AuditPolicy: auditPolicy}); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.cp.Stop)
	p.tap = newTap()
	p.closers = append(p.closers, p.tap.stop)
	setup := installation.Options{Root: o.root, Bin: o.bin, Dir: dir, InventoryNamespace: inventoryNamespace, Front: p.tap.start}
	if o.soak {
		// A soak deletes a lot on purpose; the brake on deletions would leave much of it to later minutes.
		setup.Inventory = "  maxDeletionPercent: 100\n"
		setup.Front = nil // Faults of A&AI are to reach the controller as they are.
	}
	p.hs, err = installation.Prepare(ctx, p.cp, setup)
	if err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.hs.Stop)
	p.audit = &auditLog{path: p.cp.AuditLogPath()}
	return p, p.connect(ctx)
}

// directory is where logs, configuration and credentials go.
func (p *plane) directory() (string, error) {
	if p.options.keep != "" {
		if err := os.MkdirAll(p.options.keep, 0o700); err != nil {
			return "", fmt.Errorf("cannot make directory %q for logs: %w", p.options.keep, err)
		}
		return p.options.keep, nil
	}
	dir, err := os.MkdirTemp("", "healthscope-bench-")
	if err != nil {
		return "", fmt.Errorf("cannot make a directory for logs: %w", err)
	}
	p.closers = append(p.closers, func() error { return os.RemoveAll(dir) })
	return dir, nil
}

// connect makes clients and namespaces, and begins to watch.
func (p *plane) connect(ctx context.Context) error {
	p.config = p.cp.Config()
	p.config.UserAgent = "healthscope-bench"
	scheme, err := newScheme(corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	if p.client, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make client: %w", err)
	}
	names := []string{inventoryNamespace, floorNamespace, fleetNamespace}
	for i := range namespaces {
		names = append(names, appNamespace(i), scopeNamespace(i))
	}
	err = each(ctx, len(names), func(ctx context.Context, i int) error {
		namespace := &corev1.Namespace{}
		namespace.Name = names[i]
		return p.client.Create(ctx, namespace)
	})
	if err != nil {
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	var watching context.Context
	watching, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := p.watch(ctx, watching, scheme); err != nil {
		return err
	}
	p.floor, err = newFloor(ctx, watching, p)
	return err
}

// close stops what runs and removes what has been made.
func (p *plane) close() error {
	if p.stop != nil {
		p.stop()
	}
	p.running.Wait()
	var errs []error
	for _, undo := range slices.Backward(p.closers) {
		errs = append(errs, undo())
	}
	return errors.Join(errs...)
}

// pids are the ids of all processes, by name, the load generator's own among them.
func (p *plane) pids() map[string]int {
	pids := p.cp.PIDs()
	maps.Copy(pids, p.hs.PIDs())
	pids["load generator"] = os.Getpid()
	return pids
}

// logf tells people what goes on.
func (p *plane) logf(format string, args ...any) {
	fmt.Fprintf(p.log, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func newScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, to := range add {
		if err := to(scheme); err != nil {
			return nil, fmt.Errorf("cannot register types: %w", err)
		}
	}
	return scheme, nil
}

func appNamespace(i int) string { return fmt.Sprintf("bench-apps-%d", i%namespaces) }

func scopeNamespace(i int) string { return fmt.Sprintf("bench-scopes-%d", i%namespaces) }
