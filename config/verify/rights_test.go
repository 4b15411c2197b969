package verify

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rbac is the folder of the roles, and home the namespace of the programs.
const (
	rbac = "../rbac"
	home = "healthscope-system"
)

// roleFiles are the files with roles, by the section of the page that documents them.
var roleFiles = map[string]string{
	"Monitor":                      "monitor_role.yaml",
	"Controller":                   "controller_role.yaml",
	"Workloads of OAM":             "controller_oam.yaml",
	"ApplicationConfigurations":    "oam/applicationconfigurations/role.yaml",
	"Labels of Services":           "oam/labelservices/role.yaml",
	"Health in Applications":       "oam/applicationhealth/role.yaml",
	"Discovery":                    "options/discovery/role.yaml",
	"Trusted namespaces":           "options/trusted/role.yaml",
	"Creating bundles":             "options/createbundles/role.yaml",
	"Secrets":                      "options/secrets/role.yaml",
	"Hub in a member":              "member/role.yaml",
	"Workloads of OAM in a member": "member/oam/role.yaml",
	"Deployment":                   "deploy/role.yaml",
}

// rolesIn returns the ClusterRoles and the Roles in a file of config/rbac. Both have the same fields, as far as this test uses
// them.
func rolesIn(t *testing.T, name string) []rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rbac, name))
	if err != nil {
		t.Fatal(err)
	}
	var found []rbacv1.ClusterRole
	for _, document := range documentsOf(string(data)) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatalf("cannot read %s: %v", name, err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			found = append(found, role)
		}
	}
	return found
}

// rights returns the rules in a file of config/rbac, one line for each group and resource: group, resource, verbs, and where the
// rule applies.
func rights(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, role := range rolesIn(t, name) {
		for _, rule := range role.Rules {
			if len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: this test does not know rules with URLs", name)
			}
			where := "everywhere"
			if role.Kind == "Role" {
				where = "own namespace"
				if role.Namespace != home {
					where = "namespace `" + role.Namespace + "`"
				}
			}
			if len(rule.ResourceNames) > 0 {
				where += ", only `" + strings.Join(rule.ResourceNames, "`, `") + "`"
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
	for title, file := range roleFiles {
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

func TestEveryOptionIsDocumented(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rbac, "options", "*", "role.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the roles of options: %d found, %v", len(files), err)
	}
	documented := map[string]bool{}
	for _, file := range roleFiles {
		documented[filepath.Join(rbac, file)] = true
	}
	for _, file := range files {
		if !documented[file] {
			t.Errorf("config/docs/rights.md: add a section for %s, and add it to roleFiles", file)
		}
	}
}

// forUsers returns the rules of the roles for users, one line for each: role, resources or paths, verbs, and the roles of
// Kubernetes into which the role is aggregated.
func forUsers(t *testing.T) []string {
	t.Helper()
	var all []string
	for path := range manifestsIn(t, "users") {
		name, _ := filepath.Rel(rbac, path)
		for _, role := range rolesIn(t, name) {
			var parts []string
			for _, of := range []string{"view", "edit", "admin"} {
				if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+of] == "true" {
					parts = append(parts, "`"+of+"`")
				}
			}
			for _, rule := range role.Rules {
				what := slices.Clone(rule.NonResourceURLs)
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						what = append(what, group+"/"+resource)
					}
				}
				line := []string{"`" + role.Name + "`", "`" + strings.Join(what, "`, `") + "`", strings.Join(rule.Verbs, ", "), cmp.Or(strings.Join(parts, ", "), "none")}
				all = append(all, strings.Join(line, " | "))
			}
		}
	}
	return all
}

func TestRolesForUsersAreDocumented(t *testing.T) {
	section := readPage(t, "rights.md").section(t, "Users")
	var got []string
	for _, r := range section.rows(t, "role") {
		got = append(got, strings.Join([]string{r["role"], r["for"], r["verbs"], r["part of"]}, " | "))
	}
	section.documents(t, "right for users", forUsers(t), got)
}
