package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
	// floorNamespace is where the floor's objects are.
	floorNamespace = "bench-floor"
	// floorGroup is the API group of the floor's copies of our kinds, which are the same in all else. Neither monitor nor controller knows them.
	floorGroup = "bench.healthscope.io"
)

// hop is one step of a way: a patch of the status of one object, until the watch shows it.
type hop struct {
	client client.Client
	board  *board[string]
	object client.Object
	// filled is the patch that gives the object its first status.
	filled client.Patch
	// patches are made in turn, and marks are what the watch shows after each.
	patches [2]client.Patch
	marks   [2]string
	turn    int
}

// measure makes the next patch, and returns how long it took until the watch showed it.
func (h *hop) measure(ctx context.Context) (time.Duration, error) {
	h.turn = 1 - h.turn
	want := h.marks[h.turn]
	key := client.ObjectKeyFromObject(h.object)
	seen := h.board.expect("the floor's watch", map[types.NamespacedName]check[string]{key: func(mark string) string {
		if mark == want {
			return ""
		}
		return fmt.Sprintf("it shows %q, not %q", mark, want)
	}})
	target, ok := h.object.DeepCopyObject().(client.Object)
	if !ok {
		return 0, fmt.Errorf("cannot copy %T", h.object)
	}
	begin := time.Now()
	if err := h.client.Status().Patch(ctx, target, h.patches[h.turn]); err != nil {
		return 0, fmt.Errorf("cannot patch the floor's object %q: %w", key, err)
	}
	at, err := seen(ctx)
	return at.Sub(begin), err
}

// floor measures what bare client-go needs for the hops of a way.
type floor struct {
	pod, deployment, bundle, scope *hop
}

// newFloor creates the floor's objects, of the same make as those that are measured, and watches them.
func newFloor(ctx, watching context.Context, p *plane) (*floor, error) {
	if err := p.installCopies(ctx); err != nil {
		return nil, err
	}
	kinds, err := newScheme(corev1.AddToScheme, appsv1.AddToScheme, addCopies)
	if err != nil {
		return nil, err
	}
	c, err := client.New(p.config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("cannot make client: %w", err)
	}
	shown := newBoard[string]("objects of the floor")
	f, err := makeFloor(ctx, c, shown)
	if err != nil {
		return nil, err
	}
	only := cache.Options{Scheme: kinds, DefaultTransform: slim, DefaultNamespaces: map[string]cache.Config{floorNamespace: {}}}
	return f, p.follow(ctx, watching, p.config, only, map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&corev1.Pod{}:        handler(shown, func(o *corev1.Pod) string { return podMark(&o.Status) }),
		&appsv1.Deployment{}: handler(shown, func(o *appsv1.Deployment) string { return strconv.Itoa(int(o.Status.ReadyReplicas)) }),
		&k8spluginv1alpha1.ResourceBundleState{}: handler(shown, func(o *k8spluginv1alpha1.ResourceBundleState) string {
			return strconv.Itoa(int(o.Status.ResourceCount))
		}),
		&corev1alpha2.HealthScope{}: handler(shown, func(o *corev1alpha2.HealthScope) string { return o.Status.FirstCulprit }),
	})
}

func podMark(s *corev1.PodStatus) string {
	if len(s.ContainerStatuses) == 0 {
		return "no status"
	}
	return strconv.FormatBool(s.ContainerStatuses[0].Ready)
}

// installCopies installs our CRDs under another group.
func (p *plane) installCopies(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "healthscope-bench-crd-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for CRDs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(p.options.root, "config", "crd")
	entries, err := os.ReadDir(source)
	if err != nil {
		return fmt.Errorf("cannot read CRDs: %w", err)
	}
	groups := strings.NewReplacer(k8spluginv1alpha1.GroupVersion.Group, floorGroup, corev1alpha2.GroupVersion.Group, floorGroup)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(source, entry.Name()))
		if err != nil {
			return fmt.Errorf("cannot read CRD: %w", err)
		}
		//nolint:gosec // The directory is our own, and so are the names of the CRDs.
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), []byte(groups.Replace(string(text))), 0o600); err != nil {
			return fmt.Errorf("cannot write CRD: %w", err)
		}
	}
	return p.cp.InstallManifests(ctx, dir)
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

// makeFloor creates the floor's objects.
func makeFloor(ctx context.Context, c client.Client, shown *board[string]) (*floor, error) {
	a := app{namespace: floorNamespace, name: "floor", pods: 10, configMaps: 5}
	pod := a.pod(0)
	deployment := a.deployment("floor-deployment", 3)
	filled, err := floorBundle(a)
	if err != nil {
		return nil, err
	}
	for _, o := range []client.Object{pod, deployment} {
		o.SetLabels(map[string]string{"app": "floor"}) // In no bundle.
	}
	s := scope{namespace: floorNamespace, name: "floor-scope", deployments: 10}
	f := &floor{}
	for _, h := range []struct {
		hop    **hop
		object client.Object
		// filled is the status that the object begins with, statuses are the changes of it that are made in turn.
		filled   any
		statuses [2]any
		marks    [2]string
	}{
		{&f.pod, pod, podStatus(pod, false), [2]any{podStatus(pod, false), podStatus(pod, true)}, [2]string{"true", "false"}},
		{&f.deployment, deployment, deploymentStatus(deployment, 3), [2]any{deploymentStatus(deployment, 3), deploymentStatus(deployment, 2)}, [2]string{"3", "2"}},
		{&f.bundle, a.bundle(), filled, [2]any{map[string]any{"resourceCount": 17}, map[string]any{"resourceCount": 16}}, [2]string{"17", "16"}},
		{&f.scope, s.object(), floorScope(s), [2]any{map[string]any{"firstCulprit": "none"}, map[string]any{"firstCulprit": "one"}}, [2]string{"none", "one"}},
	} {
		*h.hop = &hop{client: c, board: shown, object: h.object, marks: h.marks}
		if err := (*h.hop).encode(h.filled, h.statuses); err != nil {
			return nil, err
		}
		if err := (*h.hop).create(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// encode makes the patches of the statuses.
func (h *hop) encode(filled any, statuses [2]any) (err error) {
	for i, status := range statuses {
		if h.patches[i], err = statusPatch(status); err != nil {
			return err
		}
	}
	h.filled, err = statusPatch(filled)
	return err
}

// create creates the object with its status.
func (h *hop) create(ctx context.Context) error {
	key := client.ObjectKeyFromObject(h.object)
	err := h.client.Create(ctx, h.object)
	if err == nil {
		err = h.client.Status().Patch(ctx, h.object, h.filled)
	}
	if err != nil {
		return fmt.Errorf("cannot create the floor's object %q: %w", key, err)
	}
	return nil
}

// floorBundle is the status that the monitor would give the bundle of an application, so that it weighs as much.
func floorBundle(a app) (k8spluginv1alpha1.ResourceBundleStateStatus, error) {
	return reported(a, false)
}

// reported is the status that the monitor gives the bundle of an application, of which all is ready, or the first pod crashes.
func reported(a app, crash bool) (k8spluginv1alpha1.ResourceBundleStateStatus, error) {
	deployment := a.deployment(a.name, int32(a.pods))
	deployment.Status = deploymentStatus(deployment, int32(a.pods))
	if crash {
		deployment.Status = deploymentStatus(deployment, int32(a.pods-1))
	}
	objects := []client.Object{a.service(), deployment}
	for i := range a.configMaps {
		objects = append(objects, a.configMap(i))
	}
	for i := range a.pods {
		pod := a.pod(i)
		pod.Status = podStatus(pod, crash && i == 0)
		objects = append(objects, pod)
	}
	members, err := membersOf(objects)
	if err != nil {
		return k8spluginv1alpha1.ResourceBundleStateStatus{}, err
	}
	return bundle.Build(members, &k8spluginv1alpha1.ResourceBundleStateStatus{}, started, bundle.Options{}), nil
}

// membersOf are objects as the monitor sees them.
func membersOf(objects []client.Object) ([]*unstructured.Unstructured, error) {
	var members []*unstructured.Unstructured
	for i, o := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, fmt.Errorf("cannot find the kind of %T: %w", o, err)
		}
		o.SetUID(types.UID(fmt.Sprintf("6f1c1f3e-7d5a-4b1e-9c1d-%012d", i)))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %T: %w", o, err)
		}
		member := &unstructured.Unstructured{Object: content}
		member.SetGroupVersionKind(kinds[0])
		members = append(members, member)
	}
	return members, nil
}

// floorScope is a scope's status with as much in it as the controller's have.
func floorScope(s scope) corev1alpha2.HealthScopeStatus {
	status := corev1alpha2.HealthScopeStatus{Health: corev1alpha2.Healthy, ResourcesReady: "10/10", FirstCulprit: "none"}
	for _, ref := range s.object().Spec.WorkloadReferences {
		status.HealthConditions = append(status.HealthConditions, corev1alpha2.WorkloadHealthCondition{
			TargetWorkload: ref, HealthStatus: corev1alpha2.StatusHealthy, Diagnosis: "Ready:3/3 ",
		})
	}
	return status
}
