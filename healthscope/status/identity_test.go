package status

import "testing"

// A context holds objects in JSON or YAML, as EMCO's users have written them.
func TestAnObjectIsTheSameInYAMLAndJSON(t *testing.T) {
	t.Parallel()
	want := identity{group: "apps", version: "v1", kind: "Deployment", namespace: "shop"}
	for name, text := range map[string]string{
		"JSON":      `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`,
		"blocks":    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n",
		"flow":      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}",
		"quotes":    "\"apiVersion\": 'apps/v1'\n'kind': \"Deployment\"\nmetadata: {\"namespace\": \"shop\"}\n",
		"comments":  "# kind: Service\n---\nkind: Deployment # of the shop\napiVersion: apps/v1\nmetadata:\n    # namespace: other\n    namespace: shop\n",
		"nested":    "spec:\n  template:\n    kind: Pod\n    metadata: {namespace: other}\nkind: Deployment\napiVersion: apps/v1\nmetadata: {namespace: shop}\n",
		"long text": "metadata:\n  annotations:\n    note: |\n      kind: Service\n      apiVersion: v1\n  namespace: shop\nkind: Deployment\napiVersion: apps/v1\n",
		"anchor":    "metadata: {namespace: &where shop, labels: {of: *where}}\nkind: Deployment\napiVersion: apps/v1\n",
	} {
		if got := identify(text); got != want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for name, text := range map[string]string{
		"a placeholder": placeholder, "no kind": "apiVersion: v1\n", "no version": `{"kind":"Pod"}`, "a list": "- kind: Pod\n", "no text": "", "a tab": "\tkind: Pod\n",
	} {
		if got := identify(text); got != (identity{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
