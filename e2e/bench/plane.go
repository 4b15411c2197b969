package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// waitLimit is the timeout of every wait for a result.
	waitLimit = 3 * time.Minute
	// requestLimit is the timeout of a request of the load generator.
	requestLimit = time.Minute
	// quietTime is how long nothing must change before a change counts as finished: longer than any pause between two writes.
	quietTime = time.Second
	// inventoryNamespace is the namespace whose resources go to A&AI.
	inventoryNamespace = "bench-aai"
	// namespaces is the number of namespaces of the applications, and of the scopes.
	namespaces = 10
)

// plane is a control plane with HealthScope on it, and the load generator's clients.
type plane struct {
	options options
	log     io.Writer
	cp      *controlplane.ControlPlane
	hs      *installation.Installation
	config  *rest.Config
	client  client.Client
	// bundles and scopeBoard hold the statuses that HealthScope writes. acknowledged holds the states that A&AI has
	// acknowledged, by document ID.
	bundles      *board[k8spluginv1alpha1.ResourceBundleStateStatus]
	scopeBoard   *board[corev1alpha2.HealthScopeStatus]
	acknowledged *board[string]

	// watching ends when the plane is closed. The watches end with it.
	watching context.Context //nolint:containedctx // It is the lifetime of the plane's goroutines.
	running  sync.WaitGroup
	// closers undo what the plane has started and created, in reverse order.
	closers []func() error
}

// openPlane starts everything except monitor and controller. The caller must close the plane even when openPlane fails.
func openPlane(ctx context.Context, o options, log io.Writer) (*plane, error) {
	p := &plane{
		options: o, log: log, bundles: newBoard[k8spluginv1alpha1.ResourceBundleStateStatus]("bundles"),
		scopeBoard: newBoard[corev1alpha2.HealthScopeStatus]("scopes"), acknowledged: newBoard[string]("documents in A&AI"),
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	dir, err := p.directory()
	if err != nil {
		return p, err
	}
	p.logf("starting a control plane and A&AI; logs are in %s", dir)
	if p.cp, err = controlplane.Start(ctx, controlplane.Options{Name: "bench"}); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.cp.Stop)
	setup := installation.Options{Root: root, Bin: o.bin, Dir: dir, InventoryNamespace: inventoryNamespace, Front: p.tapInventory}
	if o.duration > 0 {
		setup.Inventory = "  maxDeletionPercent: 100\n" // A soak deletes a lot on purpose.
		setup.Front = nil                               // Faults of A&AI must reach the controller unchanged.
	}
	if p.hs, err = installation.Prepare(ctx, p.cp, setup); err != nil {
		return p, err
	}
	p.closers = append(p.closers, p.hs.Stop)
	return p, p.connect(ctx)
}

// directory returns the directory for programs, logs, configuration and credentials.
func (p *plane) directory() (string, error) {
	if p.options.keep != "" {
		return p.options.keep, os.MkdirAll(p.options.keep, 0o700)
	}
	dir, err := os.MkdirTemp("", "healthscope-bench-")
	p.closers = append(p.closers, func() error { return os.RemoveAll(dir) })
	return dir, err
}

// connect creates the client and the namespaces, and begins to watch bundles and scopes.
func (p *plane) connect(ctx context.Context) error {
	p.config = p.cp.Config()
	p.config.UserAgent = "healthscope-bench"
	var stop context.CancelFunc
	p.watching, stop = context.WithCancel(context.WithoutCancel(ctx))
	p.closers = append(p.closers, func() error {
		stop()
		p.running.Wait()
		return nil
	})
	scheme, err := newScheme(corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme, rbacv1.AddToScheme,
		corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	if p.client, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make client: %w", err)
	}
	names := []string{inventoryNamespace, fleetNamespace}
	for i := range namespaces {
		names = append(names, appNamespace(i), scopeNamespace(i))
	}
	for _, name := range names {
		namespace := &corev1.Namespace{}
		namespace.Name = name
		if err := p.create(ctx, namespace); err != nil {
			return err
		}
	}
	return p.watch(ctx, cache.Options{Scheme: scheme}, map[client.Object]toolscache.ResourceEventHandler{
		&k8spluginv1alpha1.ResourceBundleState{}: onBoard(p.bundles, func(o *k8spluginv1alpha1.ResourceBundleState) k8spluginv1alpha1.ResourceBundleStateStatus {
			s := o.Status
			return k8spluginv1alpha1.ResourceBundleStateStatus{Ready: s.Ready, ResourceCount: s.ResourceCount, Resources: s.Resources, Summary: s.Summary, Malformed: s.Malformed}
		}),
		&corev1alpha2.HealthScope{}: onBoard(p.scopeBoard, func(o *corev1alpha2.HealthScope) corev1alpha2.HealthScopeStatus { return o.Status }),
	})
}

// watch passes the events of kinds to handlers until the plane is closed. It returns after the first list of every kind.
func (p *plane) watch(ctx context.Context, o cache.Options, handlers map[client.Object]toolscache.ResourceEventHandler) error {
	o.DefaultTransform = cache.TransformStripManagedFields()
	informers, err := cache.New(p.config, o)
	if err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	for object, h := range handlers {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(h)
		}
		if err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
	}
	p.running.Go(func() {
		if err := informers.Start(p.watching); err != nil {
			p.logf("watching ended: %v", err)
		}
	})
	ctx, cancel := withLimit(ctx)
	defer cancel()
	if !informers.WaitForCacheSync(ctx) {
		return errors.New("cannot watch: the objects could not be listed")
	}
	return nil
}

// onBoard returns a handler that puts a value of each object on a board.
func onBoard[O client.Object, V any](b *board[V], of func(O) V) toolscache.ResourceEventHandler {
	put := func(object any) {
		if o, ok := object.(O); ok {
			b.put(client.ObjectKeyFromObject(o), of(o))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				b.remove(name.AsNamespacedName())
			}
		},
	}
}

// close stops everything that the plane has started, and removes what it has created.
func (p *plane) close() error {
	var errs []error
	for _, undo := range slices.Backward(p.closers) {
		errs = append(errs, undo())
	}
	return errors.Join(errs...)
}

// logf reports progress.
func (p *plane) logf(format string, args ...any) {
	fmt.Fprintf(p.log, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func newScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder(add)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register types: %w", err)
	}
	return scheme, nil
}

func appNamespace(i int) string { return fmt.Sprintf("bench-apps-%d", i%namespaces) }

func scopeNamespace(i int) string { return fmt.Sprintf("bench-scopes-%d", i%namespaces) }
