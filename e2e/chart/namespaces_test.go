package chart

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// elsewhere is a release's namespace other than Namespace.
const elsewhere = "elsewhere"

// renderElsewhere is like render, for a release in namespace elsewhere.
func renderElsewhere(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := helm.RenderIn(t.Context(), elsewhere, values...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestOtherNamespaces checks that the chart creates objects only in the release's namespace and in the namespace that it creates, because any other may not exist.
func TestOtherNamespaces(t *testing.T) {
	objects := renderElsewhere(t, installations["other namespaces"])
	expect(t, objects, []string{"Role", "RoleBinding", "Namespace"},
		"Namespace//members", "Role/elsewhere/health-controller", "Role/members/health-controller",
		"RoleBinding/elsewhere/health-controller", "RoleBinding/members/health-controller")
	for _, o := range named(objects, "RoleBinding", "health-controller") {
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		if got := fmt.Sprint(subjects); !strings.Contains(got, "name:health-controller namespace:elsewhere") {
			t.Errorf("in %s, the role is for %s", o.GetNamespace(), got)
		}
	}
	c := configuration(t, objects, "health-controller")
	if c.Fleet.Namespace != "members" || c.Fleet.MonitorNamespace != "monitors" {
		t.Errorf("fleet is %+v", c.Fleet)
	}
}

// TestTheLeaseOfTheMonitor checks that the controller looks for the Lease in the namespace in which the chart installs the monitor, and may
// read it. In a namespace other than the release's, the controller may read only Leases with the name of that Lease.
func TestTheLeaseOfTheMonitor(t *testing.T) {
	objects := renderElsewhere(t)
	if got := configuration(t, objects, "healthscope-controller").Fleet.MonitorNamespace; got != elsewhere {
		t.Errorf("the monitor's Lease is looked for in %q; want it where the chart installs the monitor", got)
	}
	expect(t, named(objects, "ClusterRole", "healthscope-controller-leases"), []string{"ClusterRole"})

	objects = renderElsewhere(t, installations["other namespaces"])
	want := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"healthscope-monitor"}, Verbs: []string{"list", "watch"}}}
	if diff := cmp.Diff(want, one[rbacv1.ClusterRole](t, objects, "ClusterRole", "health-controller-leases").Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if b := one[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", "health-controller-leases"); b.Subjects[0].Namespace != elsewhere || b.RoleRef.Name != "health-controller-leases" {
		t.Errorf("the binding is %+v", b)
	}
}

// aMonitorOfAnotherRelease checks that a hub accepts config.fleet.monitorNamespace before the namespace exists, that a monitor can then be installed
// there, and that the controller may watch the Lease of that monitor and no other.
func aMonitorOfAnotherRelease(t *testing.T, plane *controlplane.ControlPlane, api client.Client) {
	must(t, plane, "upgrade", Release, helm.Chart(), "--namespace", Namespace, "--set", "monitor.enabled=false,config.fleet.monitorNamespace=monitors")
	must(t, plane, "install", "healthscope-near", helm.Chart(), "--namespace", "monitors", "--create-namespace", "--set", "controller.enabled=false,crds.enabled=false")
	if !exists(t, api, "Deployment", "apps/v1", "monitors", "healthscope-near-monitor") {
		t.Error("there is no monitor of the other release")
	}
	lease := authorizationv1.ResourceAttributes{Namespace: "monitors", Group: "coordination.k8s.io", Resource: "leases", Verb: "watch", Name: "healthscope-monitor"}
	account := "system:serviceaccount:" + Namespace + ":healthscope-controller"
	mayAtLast(t, api, account, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &lease})
	lease.Name = "healthscope-controller"
	if allowed, err := mayUser(t.Context(), api, account, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &lease}); err != nil || allowed {
		t.Errorf("another Lease: allowed: %t, %v", allowed, err)
	}
}

func TestTheNamespaceOfMembers(t *testing.T) {
	for values, want := range map[string]string{`{}`: "keep", `clustersNamespace: {keep: false}`: ""} {
		found := named(render(t, values), "Namespace", "healthscope-clusters")
		if len(found) != 1 || found[0].GetAnnotations()["helm.sh/resource-policy"] != want {
			t.Errorf("%s: %v; want the resource policy %q", values, found, want)
		}
	}
}

// notes returns the notes that Helm prints for an installation. It does not need a cluster.
func notes(t *testing.T, namespace, values string) string {
	t.Helper()
	given, remove, err := helm.values([]string{values})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}()
	args := append([]string{"install", Release, helm.Chart(), "--dry-run=client", "--namespace", namespace}, given...)
	out, err := helm.Command(t.Context(), args...).CombinedOutput()
	_, text, found := strings.Cut(string(out), "NOTES:")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	return text
}

// TestNotesTellHowToAddAMember checks that the printed command works unchanged in any namespaces.
func TestNotesTellHowToAddAMember(t *testing.T) {
	for _, c := range []struct{ namespace, values, flags string }{
		{Namespace, ``, ""},
		{elsewhere, ``, " --monitor-namespace elsewhere"},
		{elsewhere, `{monitor: {enabled: false}, config: {fleet: {monitorNamespace: healthscope-system}}}`, ""},
		{Namespace, `config: {fleet: {namespace: members}}`, " --hub-namespace members"},
		{Namespace, installations["other namespaces"], " --monitor-namespace monitors --hub-namespace members"},
	} {
		command := `  healthscope clusters add "PROVIDER+CLUSTER" --context "CONTEXT"` + c.flags
		if text := notes(t, c.namespace, c.values); !slices.Contains(strings.Split(text, "\n"), command) {
			t.Errorf("in %s, %s: want the line %q in:\n%s", c.namespace, c.values, command, text)
		}
	}
	if text := notes(t, Namespace, installations["member"]); strings.Contains(text, "clusters add") {
		t.Errorf("a member adds no members:\n%s", text)
	}
}

// TestTheFirstScopeOfTheNotesCanBePasted checks that a shell passes a HealthScope to kubectl.
func TestTheFirstScopeOfTheNotesCanBePasted(t *testing.T) {
	_, command, _ := strings.Cut(notes(t, Namespace, ""), "A first scope")
	_, command, _ = strings.Cut(command, "\n\n")
	command, _, _ = strings.Cut(command, "\n\n")
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "kubectl() { [ \"$*\" = 'apply -f -' ] && cat; }\n"+command).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var first corev1alpha2.HealthScope
	if err := yaml.UnmarshalStrict(out, &first); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if first.Kind != "HealthScope" || len(first.Spec.Apps) != 1 || first.Spec.Apps[0].WorkloadSelector == nil {
		t.Errorf("got %+v", first)
	}
}

// TestNotesTellWhatStays checks the notes about what an uninstallation leaves.
func TestNotesTellWhatStays(t *testing.T) {
	const crds, clusters = "CustomResourceDefinitions, with all HealthScopes and bundles, stay", "Namespace healthscope-clusters, with the Secrets of members, stays"
	for values, want := range map[string][]string{
		`{}`:                                 {crds, clusters},
		`crds: {keep: false}`:                {clusters},
		`crds: {enabled: false}`:             {clusters},
		`clustersNamespace: {keep: false}`:   {crds},
		`clustersNamespace: {create: false}`: {crds, clusters},
		`{clustersNamespace: {create: false, keep: false}, crds: {keep: false}}`: {clusters},
		`controller: {enabled: false}`:                                           {crds},
	} {
		text := notes(t, Namespace, values)
		for _, sentence := range []string{crds, clusters} {
			if got := strings.Contains(text, sentence); got != slices.Contains(want, sentence) {
				t.Errorf("%s: says %q: %t", values, sentence, got)
			}
		}
	}
}
