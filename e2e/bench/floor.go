package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

const (
	// floorNamespace is the namespace of the floor's objects.
	floorNamespace = "bench-floor"
	// floorGroup is the API group of copies of our kinds. Neither monitor nor controller knows it.
	floorGroup = "bench.healthscope.io"
)

// hop is one step of the path from a change to its result, made with client-go only. It patches the status of one object, and
// returns the time until a watch reported the patch.
type hop func(context.Context) (time.Duration, error)

// floor creates hops, and measures the time that client-go alone needs for the same changes.
type floor struct {
	client client.Client
	board  *board[string] // Resource versions.
}

// newFloor installs the copies of our kinds, and watches the floor's objects.
func (b *bench) newFloor(ctx context.Context) (*floor, error) {
	namespace := &corev1.Namespace{}
	namespace.Name = floorNamespace
	if err := b.create(ctx, namespace); err != nil {
		return nil, err
	}
	if err := b.installCopies(ctx); err != nil {
		return nil, err
	}
	kinds, err := newScheme(corev1.AddToScheme, appsv1.AddToScheme, addCopies)
	if err != nil {
		return nil, err
	}
	f := &floor{board: newBoard[string]("objects of the floor")}
	if f.client, err = client.New(b.config, client.Options{Scheme: kinds}); err != nil {
		return nil, fmt.Errorf("cannot make client: %w", err)
	}
	handlers := map[client.Object]toolscache.ResourceEventHandler{}
	for _, o := range []client.Object{&corev1.Pod{}, &appsv1.Deployment{}, &k8spluginv1alpha1.ResourceBundleState{}, &corev1alpha2.HealthScope{}} {
		handlers[o] = onBoard(f.board, client.Object.GetResourceVersion)
	}
	return f, b.watch(ctx, cache.Options{Scheme: kinds, DefaultNamespaces: map[string]cache.Config{floorNamespace: {}}}, handlers)
}

// needFloor returns the floor. It creates the floor on the first call.
func (b *bench) needFloor(ctx context.Context) (_ *floor, err error) {
	if b.floor == nil {
		b.floor, err = b.newFloor(ctx)
	}
	return b.floor, err
}

// installCopies installs our CRDs under another group.
func (b *bench) installCopies(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "healthscope-bench-crd-")
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { return os.RemoveAll(dir) })
	source := os.DirFS(filepath.Join(root, "config", "crd"))
	if err := os.CopyFS(dir, source); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	groups := strings.NewReplacer(k8spluginv1alpha1.GroupVersion.Group, floorGroup, corev1alpha2.GroupVersion.Group, floorGroup)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(groups.Replace(string(text))), 0o600) //nolint:gosec // The folder is ours.
		}
		if err != nil {
			return err
		}
	}
	return b.cp.InstallManifests(ctx, dir)
}

// addCopies registers our types under the floor's group.
func addCopies(s *runtime.Scheme) error {
	bundles := schema.GroupVersion{Group: floorGroup, Version: k8spluginv1alpha1.GroupVersion.Version}
	scopes := schema.GroupVersion{Group: floorGroup, Version: corev1alpha2.GroupVersion.Version}
	s.AddKnownTypes(bundles, &k8spluginv1alpha1.ResourceBundleState{}, &k8spluginv1alpha1.ResourceBundleStateList{})
	s.AddKnownTypes(scopes, &corev1alpha2.HealthScope{}, &corev1alpha2.HealthScopeList{})
	metav1.AddToGroupVersion(s, bundles)
	metav1.AddToGroupVersion(s, scopes)
	return nil
}

// hop creates an object with a status, and returns the hop that patches it with one of two statuses in turn.
func (f *floor) hop(ctx context.Context, o client.Object, status any, turns [2]any) (hop, error) {
	o.SetLabels(nil) // Without labels it is in no bundle.
	patches := make([]client.Patch, 3)
	for i, s := range append(turns[:], status) {
		var err error
		if patches[i], err = mergePatch(map[string]any{"status": s}); err != nil {
			return nil, err
		}
	}
	err := f.client.Create(ctx, o)
	if err == nil {
		err = f.client.Status().Patch(ctx, o, patches[2])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the floor's object %q: %w", o.GetName(), err)
	}
	turn := 0
	return func(ctx context.Context) (time.Duration, error) {
		turn = 1 - turn
		begin := time.Now()
		if err := f.client.Status().Patch(ctx, o, patches[turn]); err != nil {
			return 0, fmt.Errorf("cannot patch the floor's object %q: %w", o.GetName(), err)
		}
		want := o.GetResourceVersion()
		at, err := f.board.await(ctx, "the floor's watch", checks[string]{client.ObjectKeyFromObject(o): func(version string) string {
			if version == want {
				return ""
			}
			return "it has version " + version
		}})
		return at.Sub(begin), err
	}, nil
}

// floorApp returns an application like those that are measured.
func floorApp(name string) app {
	return app{namespace: floorNamespace, name: name, pods: 10, configMaps: 5}
}

// pod returns the hop of a pod of 5 KB.
func (f *floor) pod(ctx context.Context, name string) (hop, error) {
	pod := floorApp(name).pod(0)
	return f.hop(ctx, pod, podStatus(pod, false), [2]any{podStatus(pod, false), podStatus(pod, true)})
}

// deployment returns the hop of a Deployment.
func (f *floor) deployment(ctx context.Context, name string) (hop, error) {
	d := floorApp(name).deployment(name, 3)
	return f.hop(ctx, d, deploymentStatus(d, 3), [2]any{deploymentStatus(d, 3), deploymentStatus(d, 2)})
}

// bundle returns the hop of a bundle of the size of those that the monitor writes. Only one small field of it is patched.
func (f *floor) bundle(ctx context.Context, name string) (hop, error) {
	a := floorApp(name)
	status, err := a.reported(false)
	if err != nil {
		return nil, err
	}
	return f.hop(ctx, a.bundle(), status, [2]any{map[string]any{"resourceCount": 17}, map[string]any{"resourceCount": 16}})
}

// scope returns the hop of a scope with a status of the size that the controller writes. Only one small field of it is patched.
func (f *floor) scope(ctx context.Context, name string) (hop, error) {
	o := scope{namespace: floorNamespace, name: name, deployments: 10}.object()
	status := corev1alpha2.HealthScopeStatus{Health: corev1alpha2.Healthy, ResourcesReady: "10/10"}
	for _, ref := range o.Spec.WorkloadReferences {
		status.HealthConditions = append(status.HealthConditions, corev1alpha2.WorkloadHealthCondition{
			TargetWorkload: ref, HealthStatus: corev1alpha2.StatusHealthy, Diagnosis: "Ready:3/3 ",
		})
	}
	return f.hop(ctx, o, status, [2]any{map[string]any{"firstCulprit": "none"}, map[string]any{"firstCulprit": "one"}})
}

// burst returns the time that client-go alone needs to change two pods of each of some applications at once, and then to write
// each bundle once.
func (f *floor) burst(ctx context.Context, apps int) (time.Duration, error) {
	hops := make([][3]hop, apps)
	err := each(ctx, apps, func(ctx context.Context, i int) (err error) {
		for n, create := range []func(context.Context, string) (hop, error){f.pod, f.pod, f.bundle} {
			if hops[i][n], err = create(ctx, fmt.Sprintf("burst-%d-%d", i, n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	err = each(ctx, apps, func(ctx context.Context, i int) error {
		pods, both := errgroup.WithContext(ctx)
		for _, pod := range hops[i][:2] {
			pods.Go(func() error {
				_, err := pod(both)
				return err
			})
		}
		if err := pods.Wait(); err != nil {
			return err
		}
		_, err := hops[i][2](ctx)
		return err
	})
	return time.Since(begin), err
}

// reported returns the status that the monitor writes to the bundle of an application: with everything ready, or with a first
// pod that crashes.
func (a app) reported(crash bool) (bundleStatus, error) {
	ready := a.pods
	if crash {
		ready--
	}
	deployment := a.deployment(a.name, int32(a.pods))
	deployment.Status = deploymentStatus(deployment, int32(ready))
	objects := append(a.settings(), deployment)
	for i := range a.pods {
		pod := a.pod(i)
		pod.Status = podStatus(pod, crash && i == 0)
		objects = append(objects, pod)
	}
	members, err := membersOf(objects)
	if err != nil {
		return bundleStatus{}, err
	}
	return bundle.Build(members, &bundleStatus{}, started, bundle.Options{}), nil
}

// membersOf converts objects to the form in which the monitor reads them.
func membersOf(objects []client.Object) ([]*unstructured.Unstructured, error) {
	var members []*unstructured.Unstructured
	for i, o := range objects {
		o.SetUID(types.UID(fmt.Sprintf("6f1c1f3e-7d5a-4b1e-9c1d-%012d", i)))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %T: %w", o, err)
		}
		member := &unstructured.Unstructured{Object: content}
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, fmt.Errorf("cannot find the kind of %T: %w", o, err)
		}
		member.SetGroupVersionKind(kinds[0])
		members = append(members, member)
	}
	return members, nil
}
