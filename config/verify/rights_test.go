package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rights returns the rules of a file of config/rbac, one word for each group and resource: group, resource, verbs and where.
func rights(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "rbac", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, document := range documentsOf(string(data)) {
		var role rbacv1.ClusterRole // A Role has the same fields, as far as they are used.
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatalf("cannot read %s: %v", name, err)
		}
		where := "everywhere"
		if role.Kind == "Role" {
			where = "own namespace"
		}
		for _, rule := range role.Rules {
			if len(rule.ResourceNames)+len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: this test does not know rules with resource names or URLs", name)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					all = append(all, right(group, resource, rule.Verbs, where))
				}
			}
		}
	}
	return all
}

func right(group, resource string, verbs []string, where string) string {
	if group == "" {
		group = "core"
	}
	return strings.Join([]string{group, resource, strings.Join(slices.Sorted(slices.Values(verbs)), ", "), where}, " | ")
}

func TestRightsAreDocumented(t *testing.T) {
	p := readPage(t, "rights.md")
	for title, file := range map[string]string{"Monitor": "monitor_role.yaml", "Controller": "controller_role.yaml"} {
		section := p.section(t, title)
		var got []string
		for _, r := range section.rows(t, "group") {
			got = append(got, right(strings.Trim(r["group"], "`"), code(r["resource"]), strings.Split(r["verbs"], ", "), r["where"]))
			if r["why"] == "" {
				t.Errorf("%s: say why %s are needed", p.name, r["resource"])
			}
		}
		section.documents(t, "right of "+file, rights(t, file), got)
	}
}
