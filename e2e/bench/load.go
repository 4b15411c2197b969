package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

const (
	// writers is the maximum number of concurrent requests of the load generator.
	writers = 32
	// retryPause is the pause before a request is sent again after a failure of the API server.
	retryPause = 100 * time.Millisecond
)

// each calls do for 0 to n-1, with at most writers calls at a time.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// send sends a request until the API server, which a soak restarts, has responded to it. The request may therefore be processed
// twice. notError reports whether an error means that it was processed before.
func send(ctx context.Context, o client.Object, what string, notError func(error) bool, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for {
		err := request(ctx)
		if err == nil || notError(err) {
			return nil
		}
		if answered(err) || pause(ctx, retryPause) != nil {
			return fmt.Errorf("cannot %s %T %q: %w", what, o, client.ObjectKeyFromObject(o), err)
		}
	}
}

// answered reports whether an error is the response of the API server to the request itself. It is false for errors that report
// a state of the API server, such as ServiceUnavailable.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err) && !apierrors.IsServiceUnavailable(err) &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err)
}

func never(error) bool { return false }

func (p *plane) create(ctx context.Context, o client.Object) error {
	return send(ctx, o, "create", apierrors.IsAlreadyExists, func(ctx context.Context) error { return p.client.Create(ctx, o) })
}

func (p *plane) delete(ctx context.Context, o client.Object) error {
	return send(ctx, o, "delete", apierrors.IsNotFound, func(ctx context.Context) error { return p.client.Delete(ctx, o, client.GracePeriodSeconds(0)) })
}

// patch patches the metadata or the spec of an object. The object needs only its namespace and its name.
func (p *plane) patch(ctx context.Context, o client.Object, patch any) error {
	data, err := mergePatch(patch)
	if err != nil {
		return err
	}
	return send(ctx, o, "patch", never, func(ctx context.Context) error { return p.client.Patch(ctx, o, data) })
}

// patchStatus merges fields into the status of an object.
func (p *plane) patchStatus(ctx context.Context, o client.Object, status any) error {
	data, err := mergePatch(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return send(ctx, o, "patch the status of", never, func(ctx context.Context) error { return p.client.Status().Patch(ctx, o, data) })
}

func mergePatch(patch any) (client.Patch, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// createApps creates applications whose pods are ready, without their bundles.
func (p *plane) createApps(ctx context.Context, apps []app) error {
	return each(ctx, len(apps), func(ctx context.Context, i int) error { return p.createApp(ctx, apps[i]) })
}

func (p *plane) createApp(ctx context.Context, a app) error {
	for _, o := range a.settings() {
		if err := p.create(ctx, o); err != nil {
			return err
		}
	}
	if err := p.createDeployment(ctx, a.deployment(a.name, int32(a.pods))); err != nil {
		return err
	}
	for i := range a.pods {
		if err := p.createPod(ctx, a, i); err != nil {
			return err
		}
	}
	return nil
}

// createPod creates a pod that is ready.
func (p *plane) createPod(ctx context.Context, a app, i int) error {
	if err := p.create(ctx, a.pod(i)); err != nil {
		return err
	}
	return p.crash(ctx, a, i, false)
}

// createDeployment creates a Deployment whose replicas are ready.
func (p *plane) createDeployment(ctx context.Context, d *appsv1.Deployment) error {
	if err := p.create(ctx, d); err != nil {
		return err
	}
	return p.scale(ctx, d, *d.Spec.Replicas)
}

// createBundles creates the bundles of applications, without a status.
func (p *plane) createBundles(ctx context.Context, apps []app) error {
	return each(ctx, len(apps), func(ctx context.Context, i int) error { return p.create(ctx, apps[i].bundle()) })
}

// crash makes a pod crash, or lets it recover, with one patch of its status.
func (p *plane) crash(ctx context.Context, a app, i int, crash bool) error {
	pod := a.pod(i)
	return p.patchStatus(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, podStatus(pod, crash))
}

// scale makes that number of replicas of a Deployment ready, with one patch of its status.
func (p *plane) scale(ctx context.Context, d *appsv1.Deployment, ready int32) error {
	d.Generation = 1 // Nothing changes its spec.
	return p.patchStatus(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}, deploymentStatus(d, ready))
}

// deleteApp deletes the bundle of an application, and then its objects.
func (p *plane) deleteApp(ctx context.Context, a app) error {
	if err := p.delete(ctx, a.bundle()); err != nil {
		return err
	}
	objects := append(a.settings(), a.deployment(a.name, 1))
	for i := range a.pods {
		objects = append(objects, a.pod(i))
	}
	return each(ctx, len(objects), func(ctx context.Context, i int) error { return p.delete(ctx, objects[i]) })
}

// scopeLabel is the label of Deployments with the name of their scope.
const scopeLabel = "scope"

// scope is a HealthScope over Deployments, or over the bundles of applications.
type scope struct {
	namespace, name string
	deployments     int
	// byLabel is true when the scope selects its Deployments by their label, and false when it refers to each.
	byLabel bool
	apps    []app
}

func (s scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: s.name}
}

// workload returns one of the scope's Deployments, which are in no bundle.
func (s scope) workload(i int) *appsv1.Deployment {
	name := fmt.Sprintf("%s-%02d", s.name, i)
	d := app{namespace: s.namespace, name: name}.deployment(name, 3)
	d.Labels = map[string]string{"app": name, scopeLabel: s.name}
	return d
}

func (s scope) object() *corev1alpha2.HealthScope {
	o := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Spec: corev1alpha2.HealthScopeSpec{
		WorkloadReferences: []corev1alpha2.WorkloadReference{},
	}}
	if s.byLabel {
		o.Spec.Apps = append(o.Spec.Apps, corev1alpha2.ScopeApp{Name: "selected", WorkloadSelector: &corev1alpha2.WorkloadSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{scopeLabel: s.name}},
		}})
		return o
	}
	for i := range s.deployments {
		o.Spec.WorkloadReferences = append(o.Spec.WorkloadReferences, corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: s.workload(i).Name})
	}
	for _, a := range s.apps {
		o.Spec.Apps = append(o.Spec.Apps, corev1alpha2.ScopeApp{Name: a.name, WorkloadReferences: []corev1alpha2.WorkloadReference{
			{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: a.name},
		}})
	}
	return o
}

// createScopes creates scopes and their Deployments, which are ready.
func (p *plane) createScopes(ctx context.Context, scopes []scope) error {
	return each(ctx, len(scopes), func(ctx context.Context, i int) error {
		for d := range scopes[i].deployments {
			if err := p.createDeployment(ctx, scopes[i].workload(d)); err != nil {
				return err
			}
		}
		return p.create(ctx, scopes[i].object())
	})
}
