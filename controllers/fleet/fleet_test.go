package fleet_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

// edge01 is the name of the member cluster in the specs.
const edge01 = "provider+edge01"

// site is a hub with a fleet under test. Its Secrets, and the Leases of the monitors in all clusters, are in separate
// namespaces.
type site struct {
	*viewer

	// secrets is the namespace of the Secrets in the hub, watch that of the Leases, and shop that of the bundles in the member.
	secrets, watch, shop string
	objects              *fleet.Objects
	parse                func([]byte) (*rest.Config, error)
	timeout              time.Duration
	// clock is the clock of the hub; nil means the system clock.
	clock clock.WithTickerAndDelayedExecution
	// wrap wraps the transport of the hub's requests to its own API server; nil means none.
	wrap func(http.RoundTripper) http.RoundTripper

	// changes are the changes of clusters. states are the states of the member so far.
	changes *fleet.Subscription
	mu      sync.Mutex
	states  []fleet.ClusterState
}

// newSite creates the namespaces of a site, and starts monitors that renew their Leases.
func newSite(ctx context.Context) *site {
	GinkgoHelper()
	s := &site{secrets: suite.NewNamespace(ctx, api), watch: suite.NewNamespace(ctx, api), parse: kubeconfig.Parse, timeout: 10 * time.Second}
	for _, name := range []string{s.watch, s.secrets} {
		Expect(edgeAPI.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	s.shop = s.secrets
	monitor(api, s.watch) //nolint:contextcheck // It lives longer than the set-up of a spec.
	return s
}

// run runs the hub until the spec is over.
//
//nolint:contextcheck // The hub lives until the spec is cleaned up, which is longer than the context of the spec.
func (s *site) run(ctx context.Context) {
	GinkgoHelper()
	s.objects = fleet.NewObjects(nil, nil)
	life, _ := suite.Lasting()
	s.objects.Start(life)
	s.viewer = look(healthscope.DefaultPolicy(), func(o *fleet.Options, config *rest.Config) {
		if s.wrap != nil {
			config.Wrap(s.wrap)
		}
		o.Objects, o.Clock = s.objects, s.clock
		o.Liveness = &fleet.Liveness{MonitorNamespace: s.watch, Timeout: s.timeout}
		o.Members = &fleet.Members{Namespace: s.secrets, Parse: s.parse}
	})
	var cancel func()
	s.changes, cancel = s.Subscribe(fleet.Clusters)
	DeferCleanup(cancel)
	go func() { // Independent of how often a spec reads the states.
		for {
			select {
			case <-s.changes.Ready():
				s.history()
			case <-life.Done():
				return
			}
		}
	}()
	s.sync(ctx)
}

// history returns the states of the member so far, up to the current one in the view.
func (s *site) history() []fleet.ClusterState {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes.Take() {
		if state, known := s.State(edge01); known && c == fleet.Change(fleet.ClusterChange{Cluster: edge01}) {
			s.states = append(s.states, state)
		}
	}
	return slices.Clone(s.states)
}

// went returns the sequence of the member's states without Connecting, which may end before it is seen.
func (s *site) went() []fleet.Reachability {
	var all []fleet.Reachability
	for _, state := range s.history() {
		if state.Reachability != fleet.Connecting && (len(all) == 0 || all[len(all)-1] != state.Reachability) {
			all = append(all, state.Reachability)
		}
	}
	return all
}

// edge returns the state of the member.
func (s *site) edge() fleet.ClusterState {
	state, _ := s.State(edge01)
	return state
}

// member returns a function that returns the state, the reason and the last state of a workload in a bundle of the member.
func (s *site) member(bundle, workload string) func() string {
	return func() string {
		for _, b := range s.Named(s.shop, bundle) {
			for _, m := range b.Members {
				if m.Name == workload && b.Cluster == edge01 {
					return fmt.Sprintf("%s %s %s", m.State, m.Reason, m.LastState)
				}
			}
		}
		return ""
	}
}

// secret creates the Secret of the member.
func (s *site) secret(ctx context.Context, data []byte, annotations map[string]string) *corev1.Secret {
	GinkgoHelper()
	all := map[string]string{corev1alpha2.AnnotationClusterName: edge01}
	maps.Copy(all, annotations)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.secrets, Name: "edge01", Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"}, Annotations: all},
		Data:       map[string][]byte{corev1alpha2.KubeconfigKey: data},
	}
	Expect(api.Create(ctx, secret)).To(Succeed())
	return secret
}

// events returns a function that returns the events on the Secrets of the site: type, reason and note.
func (s *site) events(ctx context.Context) func(Gomega) []string {
	return func(g Gomega) []string {
		var list eventsv1.EventList
		g.Expect(api.List(ctx, &list, client.InNamespace(s.secrets))).To(Succeed())
		var all []string
		for _, e := range list.Items {
			all = append(all, fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Note))
		}
		return all
	}
}

// heartbeat is a monitor's Lease that is renewed until it is stopped.
type heartbeat struct{ stop func() }

// monitor renews the Lease of a monitor every half second, until it is stopped or the spec ends.
func monitor(api client.Client, namespace string) *heartbeat {
	ctx, cancel := suite.Lasting()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-monitor"}}
			key, spec := client.ObjectKeyFromObject(l), coordinationv1.LeaseSpec{HolderIdentity: new("m"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NowMicro())}
			if err := api.Get(ctx, key, l); err != nil {
				l.Spec = spec
				_ = api.Create(ctx, l) // The API server may be down.
			} else {
				l.Spec = spec
				_ = api.Update(ctx, l)
			}
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}()
	h := &heartbeat{stop: func() {
		cancel()
		<-done
	}}
	DeferCleanup(h.stop)
	return h
}

// account creates a ServiceAccount in the member with the rights of a hub, in the given namespaces, or in all if none are given.
// It returns a kubeconfig with a token of the ServiceAccount for a server.
func (s *site) account(ctx context.Context, name, server string, namespaces ...string) []byte {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.watch, Name: name}}
	Expect(edgeAPI.Create(ctx, account)).To(Succeed())
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.watch, Name: name}}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"k8splugin.io"}, Resources: []string{"resourcebundlestates"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
	}
	role := metav1.ObjectMeta{Name: s.watch + "-" + name}
	if len(namespaces) == 0 {
		Expect(edgeAPI.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: role, Rules: rules})).To(Succeed())
		Expect(edgeAPI.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: role, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name}})).To(Succeed())
	}
	grant := func(namespace string, rules ...rbacv1.PolicyRule) {
		in := metav1.ObjectMeta{Namespace: namespace, Name: role.Name}
		Expect(edgeAPI.Create(ctx, &rbacv1.Role{ObjectMeta: in, Rules: rules})).To(Succeed())
		Expect(edgeAPI.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: in, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: in.Name}})).To(Succeed())
	}
	for _, namespace := range namespaces {
		grant(namespace, rules...)
	}
	grant(s.watch, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"healthscope-monitor"}, Verbs: []string{"list", "watch"}})
	token := &authenticationv1.TokenRequest{}
	Expect(edgeAPI.SubResource("token").Create(ctx, account, token)).To(Succeed())
	data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server, Authority: edge.Config().CAData, Token: token.Status.Token})
	Expect(err).NotTo(HaveOccurred())
	return data
}

// setData changes the kubeconfig of a Secret.
func setData(ctx context.Context, secret *corev1.Secret, data []byte) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.Data[corev1alpha2.KubeconfigKey] = data
	Expect(api.Update(ctx, secret)).To(Succeed())
}

// setAnnotation changes an annotation of a Secret.
func setAnnotation(ctx context.Context, secret *corev1.Secret, key, value string) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.Annotations[key] = value
	Expect(api.Update(ctx, secret)).To(Succeed())
}
