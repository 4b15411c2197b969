package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/process"
)

// This file has the row about probes.

const (
	// probeFailures is the default number of failures in a row after which a Service fails. probeSlack is how much later the
	// scope may show it.
	probeFailures = 3
	probeSlack    = time.Second
)

// targets are Services in many namespaces. A scope in each namespace has them probed. Their only endpoint is the load generator.
type targets struct {
	scopes []scope
	// services is the number of targets in each namespace. interval is the time between two probes of a target.
	services int
	interval time.Duration
	// lost is true while the targets respond to probes with 503.
	lost atomic.Bool
}

// ServeHTTP responds to probes.
func (t *targets) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if t.lost.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// newTargets creates the targets, and gives the controller the right to probe them.
func (b *bench) newTargets(ctx context.Context) (*targets, error) {
	t := &targets{services: b.options.scaled(10, 1), interval: b.options.scaledTime(10*time.Second, time.Second).Truncate(time.Second)}
	for i := range b.options.scaled(100, 3) {
		t.scopes = append(t.scopes, scope{namespace: fmt.Sprintf("bench-probes-%02d", i), name: "probed"})
	}
	address, err := process.OwnAddress()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for probes: %w", err)
	}
	server := &http.Server{Handler: t, ReadHeaderTimeout: requestLimit}
	b.running.Go(func() { _ = server.Serve(listener) }) // The closer ends it.
	b.closers = append(b.closers, server.Close)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bench-probes"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: installation.Namespace, Name: "healthscope-controller"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := b.create(ctx, o); err != nil {
			return nil, err
		}
	}
	at, err := net.ResolveTCPAddr("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	err = each(ctx, len(t.scopes), func(ctx context.Context, i int) error { return b.createTargets(ctx, t, t.scopes[i], at) })
	if err != nil {
		return nil, err
	}
	return t, b.hs.Configure(ctx, "probes: {enabled: true}\n")
}

// createTargets creates the targets of a namespace.
func (b *bench) createTargets(ctx context.Context, t *targets, s scope, at *net.TCPAddr) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }
	o := s.object()
	o.Spec.ProbeMethod, o.Spec.ProbeEndpoint, o.Spec.ProbeInterval = "GET", "/health", new(int32(t.interval.Seconds()))
	pod := &corev1.Pod{ObjectMeta: meta("target"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "target", Image: "example.org/target"}}}}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, o, pod}
	for i := range t.services {
		name := fmt.Sprintf("target-%d", i)
		service := &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		service.Labels = map[string]string{corev1alpha2.LabelScopeName: s.name}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: meta(name), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(at.Port))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod.Name}}},
		}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
		objects = append(objects, slice, service)
	}
	for _, o := range objects {
		if err := b.create(ctx, o); err != nil {
			return err
		}
	}
	return b.patchStatus(ctx, pod, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: at.IP.String(), PodIPs: []corev1.PodIP{{IP: at.IP.String()}}})
}

// lose makes all targets fail at the same time, and returns how long it took until their scopes showed each failure.
func (b *bench) lose(ctx context.Context, t *targets) ([]time.Duration, error) {
	var losses []func(context.Context) (time.Time, error)
	for _, s := range t.scopes {
		for n := range t.services {
			losses = append(losses, b.scopeBoard.expect("a target to be lost", checks[scopeStatus]{s.key(): func(s scopeStatus) string {
				if int(s.Summary.Failed) > n {
					return ""
				}
				return fmt.Sprintf("it has lost %d targets, not %d", s.Summary.Failed, n+1)
			}}))
		}
	}
	begin, took := time.Now(), make([]time.Duration, len(losses))
	t.lost.Store(true)
	for i, seen := range losses {
		at, err := seen(ctx)
		if err != nil {
			return nil, err
		}
		took[i] = at.Sub(begin)
	}
	return took, nil
}

func measureProbes(ctx context.Context, b *bench) ([]figure, error) {
	t, err := b.newTargets(ctx)
	if err != nil {
		return nil, err
	}
	all := checks[scopeStatus]{}
	for _, s := range t.scopes {
		all[s.key()] = counts(t.services, t.services)
	}
	if _, err := startUntil(ctx, b.hs.StartController, b.scopeBoard.expect("all targets to be probed", all)); err != nil {
		return nil, err
	}
	if err := b.scopeBoard.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	begin := time.Now()
	used, err := b.used(ctx, func() error { return pause(ctx, b.options.scaledTime(30*time.Second, 3*time.Second)) })
	if err != nil {
		return nil, err
	}
	cpu := 100 * used.cpu["controller"] / time.Since(begin).Seconds()
	took, err := b.lose(ctx, t)
	if err != nil {
		return nil, err
	}
	loss := latency("loss ", took, 0)
	loss.target = new(float64((probeFailures*t.interval + probeSlack).Milliseconds()))
	t.lost.Store(false)
	_, err = b.scopeBoard.await(ctx, "all targets to be well again", all)
	return []figure{{name: "CPU %", value: cpu, target: new(10.0)}, {name: "writes", value: used.scopes, target: new(0.0)}, loss}, err
}
