package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// expectation is what the application's bundle has to say.
func (a *soakApp) expectation() expectation {
	e := expectation{absent: slices.Sorted(maps.Keys(a.absent))}
	for i := range a.crashed {
		if !a.absent[i] {
			e.failed = append(e.failed, i)
		}
	}
	return e
}

func (s *soaking) anyApp() *soakApp { return s.apps[s.random.IntN(len(s.apps))] }

func (s *soaking) anyScope() *soakScope { return s.scopes[s.random.IntN(len(s.scopes))] }

// flipPod makes a pod crash, or lets it recover.
func (s *soaking) flipPod(ctx context.Context) error {
	a := s.anyApp()
	pod := s.random.IntN(a.pods)
	toggle(a.crashed, pod)
	return s.crash(ctx, a.app, pod, a.crashed[pod])
}

// scaleWorkload makes a workload of a scope not ready, or ready again.
func (s *soaking) scaleWorkload(ctx context.Context) error {
	one := s.anyScope()
	n := s.random.IntN(one.deployments)
	toggle(one.down, n)
	ready := int32(3)
	if one.down[n] {
		ready = 1
	}
	return s.scale(ctx, one.workload(n), ready)
}

// relabel takes a pod out of its application, or puts it back.
func (s *soaking) relabel(ctx context.Context) error {
	a := s.anyApp()
	pod := s.random.IntN(a.pods)
	toggle(a.absent, pod)
	value := fmt.Sprintf("%q", a.name)
	if a.absent[pod] {
		value = "null"
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, k8spluginv1alpha1.LabelDeploymentID, value))
	target := &corev1.Pod{}
	target.Namespace, target.Name = a.namespace, a.podName(pod)
	if err := s.client.Patch(ctx, target, patch); err != nil {
		return fmt.Errorf("cannot relabel pod %q: %w", client.ObjectKeyFromObject(target), err)
	}
	return nil
}

// replaceApp deletes an application, with its scope, and makes another.
func (s *soaking) replaceApp(ctx context.Context) error {
	n := s.random.IntN(len(s.apps))
	a := s.apps[n]
	s.apps = slices.Delete(s.apps, n, n+1)
	if err := s.deleteApp(ctx, a.app); err != nil {
		return err
	}
	if a.scope != nil {
		if err := s.delete(ctx, a.scope.object()); err != nil {
			return err
		}
	}
	return s.addApp(ctx)
}

// addApp makes an application with a bundle and a scope; every other bundle comes before its objects.
func (s *soaking) addApp(ctx context.Context) error {
	s.serial++
	a := &soakApp{
		app:     app{namespace: inventoryNamespace, name: fmt.Sprintf("%d-soak", s.serial), pods: 4, configMaps: 1},
		crashed: map[int]bool{}, absent: map[int]bool{},
	}
	s.apps = append(s.apps, a)
	steps := []func() error{
		func() error { return s.createBundles(ctx, []app{a.app}) },
		func() error { return s.createApp(ctx, a.app) },
	}
	if s.serial%2 == 0 {
		slices.Reverse(steps)
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return err
		}
	}
	return s.addScopeOf(ctx, a)
}

func (s *soaking) addScopeOf(ctx context.Context, a *soakApp) error {
	s.serial++
	a.scope = &scope{namespace: a.namespace, name: fmt.Sprintf("of-%s-%d", a.name, s.serial), apps: []app{a.app}}
	return s.create(ctx, a.scope.object())
}

// toggleScope deletes the scope of an application, or makes a new one.
func (s *soaking) toggleScope(ctx context.Context) error {
	a := s.anyApp()
	if a.scope == nil {
		return s.addScopeOf(ctx, a)
	}
	err := s.delete(ctx, a.scope.object())
	a.scope = nil
	return err
}

// replaceScope deletes a scope with its Deployments and makes another.
func (s *soaking) replaceScope(ctx context.Context) error {
	n := s.random.IntN(len(s.scopes))
	one := s.scopes[n]
	s.scopes = slices.Delete(s.scopes, n, n+1)
	if err := s.delete(ctx, one.object()); err != nil {
		return err
	}
	for i := range one.deployments {
		if err := s.delete(ctx, one.workload(i)); err != nil {
			return err
		}
	}
	return s.addScope(ctx)
}

// addScope makes a scope over Deployments.
func (s *soaking) addScope(ctx context.Context) error {
	s.serial++
	one := &soakScope{scope: scope{namespace: scopeNamespace(s.serial), name: fmt.Sprintf("soak-%d", s.serial), deployments: 3}, down: map[int]bool{}}
	s.scopes = append(s.scopes, one)
	return s.createScopes(ctx, []scope{one.scope})
}

// toggle puts a number into a set, or takes it out.
func toggle(set map[int]bool, n int) {
	if set[n] {
		delete(set, n)
		return
	}
	set[n] = true
}
