package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// FuzzStatus checks that every context and query give a document in valid JSON, in which every required word is set. Nothing is Ready
// in a terminated context.
func FuzzStatus(f *testing.F) {
	f.Add("web", "west+berlin", "web+Pod", object("v1", "Pod", "web"), `{"Status":"Applied"}`, `{"podStatuses":[{"metadata":{"name":"web"}}]}`, `{"Status":"Instantiated"}`, "output=full")
	f.Add("web", "west", "web", "nil", `{"Status":7}`, `{"resources":[{"kind":"Pod","name":"web","state":"Ready","since":"9999-12-31T23:59:59-12:00"}],"summary":{"total":1,"ready":1}}`, `{"Status":"Terminated"}`, "output=small")
	f.Add("\xff", "a+b+c", "instruction", "{\"kind\":[]}", "", `{"resourceStatuses":[{"res":"e30="}],"truncated":true,"resourceCount":99}`, "null", "type=cluster&output=detail&resource=x")
	f.Fuzz(func(t *testing.T, app, cluster, resource, body, state, bundle, contextState, raw string) {
		q, err := parseQuery(raw)
		if err != nil {
			return
		}
		at := "/context/42/app/" + app + "/cluster/" + cluster + "/"
		k := keys{
			"/context/42/": `"42"`, "/context/42/status/": contextState, "/context/42/meta/": state, "/context/42/app/instruction/order/": bundle,
			"/context/42/app/" + app + "/": `"x"`, at: `"x"`, at + "status/": quoted(bundle),
			at + "resource/" + resource + "/": quoted(body), at + "resource/" + resource + "/status/": state, at + "resource/y+Pod/": body,
		}
		in := k.input(t)
		if in.Context.ID() != "42" {
			return
		}
		in.Info.Actions = append(in.Info.Actions, appcontext.Action{State: appcontext.ActionState(state), ContextID: app, Time: noon.AddDate(9000, 0, 0)})
		for _, e := range in.Contents.Expected(in.Subject, q) {
			in.Reports[e.AppInCluster] = status.SavedReport(in.Contents.SavedBundle(e.AppInCluster, nil), in.Policy, noon, noon)
		}
		d := status.New(in, q)
		text := wire(t, d)
		var decoded any
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		each(d, func(_ status.App, _ status.Cluster, r status.Resource) {
			if r.GVK.Kind == "" && len(d.Problems) == 0 || q.Type == status.TypeRsync && r.RsyncStatus == "" || q.Type == status.TypeAll && r.ClusterStatus == "" {
				t.Errorf("%+v has no words, and there is no problem", r)
			}
			if q.Health && (r.Health.State == "" || d.Status == "Terminated" && r.Health.State == "Ready") {
				t.Errorf("%+v has no health, or a wrong one", r)
			}
		})
	})
}

// FuzzIdentity checks that the identity of an object in YAML or JSON, as users have written it, is the one that a parser reads, and that
// a text that identifies no object is a problem.
func FuzzIdentity(f *testing.F) {
	for _, text := range []string{
		object("apps/v1", "Deployment", "web"), object("v1", "Pod", "web") + "  namespace: store\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"x"}}`, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}",
		"kind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: b}\n", "---\nkind: Pod\napiVersion: v1\n", "a: [\nkind: Pod]\nkind: Job\napiVersion: batch/v1\n",
		"kind: \"Pod\"\napiVersion: v1 # the first\n", "\"apiVersion\": 'apps/v1'\n'kind': \"Deployment\"\nmetadata: {\"namespace\": \"shop\"}\n",
		"# kind: Service\n---\nkind: Deployment # of the shop\napiVersion: apps/v1\nmetadata:\n    # namespace: other\n    namespace: shop\n",
		"apiVersion: v1\nkind: Pod\nmetadata:\n    # who\n  name: a\n  namespace: store\n", "# it's\napiVersion: v1\nkind: Pod\n  # not more\nmetadata:\n# who\n  namespace: store # {\n",
		"spec:\n  template:\n    kind: Pod\n    metadata: {namespace: other}\nkind: Deployment\napiVersion: apps/v1\nmetadata: {namespace: shop}\n",
		"metadata:\n  annotations:\n    note: |\n      kind: Service\n      apiVersion: v1\n  namespace: shop\nkind: Deployment\napiVersion: apps/v1\n",
		"apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    a: |\n      namespace: other\n\n  namespace: x\nspec:\n  a: {b: c}\n",
		"apiVersion: v1\nkind: Pod\nmetadata:\n  x: \"a\n  namespace: other\n  b\"\n", "apiVersion: v1\nkind: Pod\ndata:\n  x: \"\nkind: Service\n\"\n",
		"apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    namespace: other\n  namespace: yes-it-is\n", "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    namespace: other\n",
		"metadata: {namespace: &where shop, labels: {of: *where}}\nkind: Deployment\napiVersion: apps/v1\n",
		"nil", "", "apiVersion: v1\n", `{"kind":"Pod"}`, "- kind: Pod\n", "\tkind: Pod\n", "apiVersion: v1\nkind: true\n", "apiVersion: apps/\nkind: Pod\n", "apiVersion: v1\nkind: Pod\nmetadata: {namespace: 5}\n",
		"apiVersion: v1\nkind: Pod\n  Template\n", "apiVersion: v1\nkind: Pod\nkind: Service\n", "apiVersion: v1\nkind: Pod\nmetadata:\n |\n  namespace:x", "apiVersion: v1\nkind: Pod\nmetadata:\n  namespace:x\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := status.New(edge("Instantiated", "x+Kind", text, "Applied").input(t), status.Query{Type: status.TypeRsync, Output: status.OutputDetail, Health: true})
		r, problem := d.Apps[0].Clusters[0].Resources[0], len(d.Problems) > 0
		want, namespace, readable, complete := identityIn(text)
		if !complete {
			return
		}
		if readable == problem {
			t.Errorf("problems %q, readable %t", d.Problems, readable)
		}
		if readable && (r.GVK != want || r.Namespace != namespace) {
			t.Errorf("%+v in %q is taken for %+v in %q", want, namespace, r.GVK, r.Namespace)
		}
	})
}

// identityIn returns what the parser reads of an object's identity, and whether that is readable. It is not complete when a part of the
// object that does not identify it cannot be parsed.
func identityIn(text string) (gvk status.GVK, namespace string, readable, complete bool) {
	var parsed map[string]any
	if encoded, err := yaml.YAMLToJSON([]byte(text)); !utf8.ValidString(text) || err == nil && json.Unmarshal(encoded, &parsed) != nil && parsed != nil {
		return gvk, "", false, false
	}
	apiVersion, isVersion := parsed["apiVersion"].(string)
	kind, isKind := parsed["kind"].(string)
	metadata, isMetadata := parsed["metadata"].(map[string]any)
	namespace, isNamespace := metadata["namespace"].(string)
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	isPlaced := (isMetadata || parsed["metadata"] == nil) && (isNamespace || metadata["namespace"] == nil)
	readable = isVersion && isKind && kind != "" && version != "" && isPlaced
	return status.GVK{Group: group, Version: version, Kind: kind}, namespace, readable, true
}
