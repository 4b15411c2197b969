package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// soakApp is an application, with the pods that crash, and those without its label.
type soakApp struct {
	app
	crashed, absent map[int]bool
	// scope judges the application, and its resources go to A&AI through the scope; nil while there is none.
	scope *scope
}

// soakScope is a scope over Deployments, with those that are not ready.
type soakScope struct {
	scope
	down map[int]bool
}

// change makes one random change, most often of a pod.
func (s *soaking) change(ctx context.Context) error {
	n := s.random.IntN(100)
	for _, kind := range []struct {
		name  string
		share int
		do    func(context.Context) error
	}{
		{"pods changed", 60, s.flipPod},
		{"workloads changed", 20, s.scaleWorkload},
		{"pods relabelled", 8, s.relabel},
		{"applications replaced", 4, s.replaceApp},
		{"scopes replaced", 4, s.replaceScope},
		{"scopes of applications created or deleted", 4, s.toggleScope},
	} {
		if n -= kind.share; n < 0 {
			s.changes[kind.name]++
			return kind.do(ctx)
		}
	}
	return nil
}

// flipPod makes a pod crash, or lets it recover.
func (s *soaking) flipPod(ctx context.Context) error {
	a := s.apps[s.random.IntN(len(s.apps))]
	pod := s.random.IntN(a.pods)
	a.crashed[pod] = !a.crashed[pod]
	return s.crash(ctx, a.app, pod, a.crashed[pod])
}

// scaleWorkload makes a workload of a scope not ready, or ready again.
func (s *soaking) scaleWorkload(ctx context.Context) error {
	one := s.scopes[s.random.IntN(len(s.scopes))]
	n := s.random.IntN(one.deployments)
	one.down[n] = !one.down[n]
	return s.scale(ctx, one.workload(n), map[bool]int32{true: 1, false: 3}[one.down[n]])
}

// relabel removes the application's label from a pod, or restores it.
func (s *soaking) relabel(ctx context.Context) error {
	a := s.apps[s.random.IntN(len(s.apps))]
	pod := s.random.IntN(a.pods)
	a.absent[pod] = !a.absent[pod]
	var label any = a.name
	if a.absent[pod] {
		label = nil
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = a.namespace, a.podName(pod)
	return s.patch(ctx, target, map[string]any{"metadata": map[string]any{"labels": map[string]any{k8spluginv1alpha1.LabelDeploymentID: label}}})
}

// replaceApp deletes an application, with its scope, and adds another.
func (s *soaking) replaceApp(ctx context.Context) error {
	n := s.random.IntN(len(s.apps))
	a := s.apps[n]
	s.apps = slices.Delete(s.apps, n, n+1)
	err := s.deleteApp(ctx, a.app)
	if a.scope != nil {
		err = errors.Join(err, s.delete(ctx, a.scope.object()))
	}
	return errors.Join(err, s.addApp(ctx))
}

// addApp adds an application with a bundle and a scope. With an odd serial number the bundle is created before the objects,
// otherwise after them.
func (s *soaking) addApp(ctx context.Context) error {
	s.serial++
	a := &soakApp{
		app:     app{namespace: inventoryNamespace, name: fmt.Sprintf("%d-soak", s.serial), pods: 4, configMaps: 1},
		crashed: map[int]bool{}, absent: map[int]bool{},
	}
	s.apps = append(s.apps, a)
	create := []func(context.Context, []app) error{s.createBundles, s.createApps}
	if s.serial%2 == 0 {
		slices.Reverse(create)
	}
	for _, do := range create {
		if err := do(ctx, []app{a.app}); err != nil {
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

// toggleScope deletes the scope of an application, or creates a new one.
func (s *soaking) toggleScope(ctx context.Context) error {
	a := s.apps[s.random.IntN(len(s.apps))]
	if a.scope == nil {
		return s.addScopeOf(ctx, a)
	}
	err := s.delete(ctx, a.scope.object())
	a.scope = nil
	return err
}

// replaceScope deletes a scope with its Deployments and adds another.
func (s *soaking) replaceScope(ctx context.Context) error {
	n := s.random.IntN(len(s.scopes))
	one := s.scopes[n]
	s.scopes = slices.Delete(s.scopes, n, n+1)
	err := s.delete(ctx, one.object())
	for i := range one.deployments {
		err = errors.Join(err, s.delete(ctx, one.workload(i)))
	}
	return errors.Join(err, s.addScope(ctx))
}

// addScope adds a scope over Deployments.
func (s *soaking) addScope(ctx context.Context) error {
	s.serial++
	one := &soakScope{scope: scope{namespace: scopeNamespace(s.serial), name: fmt.Sprintf("soak-%d", s.serial), deployments: 3}, down: map[int]bool{}}
	s.scopes = append(s.scopes, one)
	return s.createScopes(ctx, []scope{one.scope})
}

// verify waits until every bundle, every scope and A&AI are right. It returns an error when there are other bundles or scopes.
func (s *soaking) verify(ctx context.Context) error {
	bundles, scopes, pods := checks[bundleStatus]{}, checks[scopeStatus]{}, map[string]string{}
	for _, a := range s.apps {
		bundles[a.key()] = a.right(those(a.crashed), those(a.absent))
		if a.scope == nil {
			continue
		}
		scopes[a.scope.key()] = counts(a.counting(), a.counting())
		for i := range a.pods {
			if !a.absent[i] {
				pods[a.podName(i)] = podState(a.crashed[i])
			}
		}
	}
	for _, one := range s.scopes {
		scopes[one.key()] = counts(one.deployments-len(those(one.down)), one.deployments)
	}
	if _, err := s.bundles.await(ctx, "every bundle to be right", bundles); err != nil {
		return err
	}
	if _, err := s.scopeBoard.await(ctx, "every scope to be right", scopes); err != nil {
		return err
	}
	if s.bundles.count() != len(bundles) || s.scopeBoard.count() != len(scopes) {
		return fmt.Errorf("there are %d bundles and %d scopes, not %d and %d", s.bundles.count(), s.scopeBoard.count(), len(bundles), len(scopes))
	}
	return s.verifyInventory(ctx, pods)
}

// verifyInventory waits until A&AI holds the pods in the right states, and no other pods.
func (s *soaking) verifyInventory(ctx context.Context, want map[string]string) error {
	wrong := ""
	err := poll(ctx, fmt.Sprintf("A&AI to hold %d pods in the right states", len(want)), func(ctx context.Context) (bool, error) {
		objects, err := s.hs.Objects(ctx)
		held := map[string]string{}
		for _, o := range objects {
			if o.Body["kind"] == "Pod" && o.Body["data-owner"] != "others" {
				held[fmt.Sprint(o.Body["name"])] = o.Label(stateLabel)
			}
		}
		wrong = difference(held, want)
		return wrong == "", err
	})
	if err != nil {
		return fmt.Errorf("pod %s: %w", wrong, err)
	}
	return nil
}

// difference describes one pod that is not as it should be; empty when there is none.
func difference(held, want map[string]string) string {
	for name, state := range want {
		if held[name] != state {
			return fmt.Sprintf("%q is %q, not %q", name, held[name], state)
		}
	}
	for name := range held {
		if want[name] == "" {
			return fmt.Sprintf("%q should not be there", name)
		}
	}
	return ""
}
