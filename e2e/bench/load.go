package main

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// writers is the number of requests of the load generator that are under way at a time.
const writers = 32

// each does something for 0 to n-1, several at a time, each with a deadline.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, requestLimit)
			defer cancel()
			return do(ctx, i)
		})
	}
	return group.Wait()
}

// createApps creates applications whose pods are ready, without their bundles.
func (p *plane) createApps(ctx context.Context, apps []app) error {
	return each(ctx, len(apps), func(ctx context.Context, i int) error { return p.createApp(ctx, apps[i]) })
}

// createApp creates one, one object after the other.
func (p *plane) createApp(ctx context.Context, a app) error {
	objects := []client.Object{a.service()}
	for i := range a.configMaps {
		objects = append(objects, a.configMap(i))
	}
	for _, o := range objects {
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

func (p *plane) create(ctx context.Context, o client.Object) error {
	if err := p.client.Create(ctx, o); err != nil {
		return fmt.Errorf("cannot create %T %q: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// createPod creates a pod that is ready.
func (p *plane) createPod(ctx context.Context, a app, i int) error {
	pod := a.pod(i)
	if err := p.create(ctx, pod); err != nil {
		return err
	}
	pod.Status = podStatus(pod, false)
	return p.updateStatus(ctx, pod)
}

// createDeployment creates a Deployment whose replicas are ready.
func (p *plane) createDeployment(ctx context.Context, d *appsv1.Deployment) error {
	if err := p.create(ctx, d); err != nil {
		return err
	}
	d.Status = deploymentStatus(d, *d.Spec.Replicas)
	return p.updateStatus(ctx, d)
}

func (p *plane) updateStatus(ctx context.Context, o client.Object) error {
	if err := p.client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("cannot write the status of %T %q: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// createBundles creates the bundles of applications, still empty.
func (p *plane) createBundles(ctx context.Context, apps []app) error {
	return each(ctx, len(apps), func(ctx context.Context, i int) error { return p.create(ctx, apps[i].bundle()) })
}

// crash makes a pod crash, or lets it recover, by one patch of its status.
func (p *plane) crash(ctx context.Context, a app, i int, crash bool) error {
	pod := a.pod(i)
	patch, err := statusPatch(podStatus(pod, crash))
	if err != nil {
		return err
	}
	return p.patchStatus(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, patch)
}

// scale makes so many replicas of a Deployment ready, by one patch of its status.
func (p *plane) scale(ctx context.Context, d *appsv1.Deployment, ready int32) error {
	d.Generation = 1 // As after its creation, which was its last change.
	patch, err := statusPatch(deploymentStatus(d, ready))
	if err != nil {
		return err
	}
	return p.patchStatus(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}, patch)
}

// statusPatch is a merge patch that replaces what a status holds.
func statusPatch(status any) (client.Patch, error) {
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("cannot encode status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

func (p *plane) patchStatus(ctx context.Context, o client.Object, patch client.Patch) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if err := p.client.Status().Patch(ctx, o, patch); err != nil {
		return fmt.Errorf("cannot patch the status of %T %q: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// deleteApp deletes the bundle of an application, and then its objects.
func (p *plane) deleteApp(ctx context.Context, a app) error {
	if err := p.delete(ctx, a.bundle()); err != nil {
		return err
	}
	objects := []client.Object{a.service(), a.deployment(a.name, 1)}
	for i := range a.configMaps {
		objects = append(objects, a.configMap(i))
	}
	for i := range a.pods {
		objects = append(objects, a.pod(i))
	}
	return each(ctx, len(objects), func(ctx context.Context, i int) error { return p.delete(ctx, objects[i]) })
}

func (p *plane) delete(ctx context.Context, o client.Object) error {
	if err := p.client.Delete(ctx, o, &client.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete %T %q: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// scope is a HealthScope over Deployments, or over the bundles of applications.
type scope struct {
	namespace, name string
	deployments     int
	apps            []app
}

func (s scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: s.name}
}

// workload is one of the scope's Deployments, which is in no bundle.
func (s scope) workload(i int) *appsv1.Deployment {
	name := fmt.Sprintf("%s-%02d", s.name, i)
	d := app{namespace: s.namespace, name: name}.deployment(name, 3)
	d.Labels = map[string]string{"app": name}
	return d
}

func (s scope) object() *corev1alpha2.HealthScope {
	o := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Spec: corev1alpha2.HealthScopeSpec{
		WorkloadReferences: []corev1alpha2.WorkloadReference{},
	}}
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
