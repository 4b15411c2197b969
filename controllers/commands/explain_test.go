package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rulesOfWidgets is a configuration with rules for the kind Widget.
const rulesOfWidgets = configHeader + `healthCheckExprs:
- apiVersion: example.org/v1
  kind: Widget
  failed: has(status.error) && status.error != '<none>'
  current: status.phase == 'Up'
`

// mixed is an example of one file of a user: objects in YAML and JSON, a list, and comments.
const mixed = `# What runs in the store.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: store, generation: 2}
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}
---
# Nothing.
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: store}, data: {a: b}}
- {apiVersion: example.org/v1, kind: Widget, metadata: {name: left, namespace: store}, status: {phase: Up}}
- {apiVersion: example.org/v1, kind: Widget, metadata: {name: right, namespace: store}, status: {phase: Up, error: "no\npower"}}
---
{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"odd"},"status":{"phase":7}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"gone","namespace":"store","deletionTimestamp":"2026-01-01T00:00:00Z"}}
`

// runExplain runs healthscope explain with a standard input.
func runExplain(in string, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Main(append([]string{"explain"}, args...), strings.NewReader(in), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// explained runs healthscope explain and returns the explanations, one a line.
func explained(t *testing.T, in string, args ...string) (code int, explanations []explanation, errOut string) {
	t.Helper()
	code, out, errOut := runExplain(in, append(args, "-o", "json")...)
	for line := range strings.Lines(out) {
		var e explanation
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		explanations = append(explanations, e)
	}
	return code, explanations, errOut
}

func namesOf(explanations []explanation) (names []string) {
	for i := range explanations {
		names = append(names, explanations[i].Name)
	}
	return names
}

func TestExplainInATable(t *testing.T) {
	const want = `STATE         OBJECT               NAMESPACE   REASON                  RULE                      MESSAGE
Ready         Deployment/web       store       -                       Deployment                -
Ready         ConfigMap/settings   store       Exists                  ConfigMap                 -
Ready         Widget/left          store       -                       user:Widget.example.org   -
Failed        Widget/right         store       HealthCheckFailed       user:Widget.example.org   health check "Widget.example.org": failed is true: has(status.error) && status.error != '<none>'
Pending       Widget/odd           -           HealthCheckNotCurrent   user:Widget.example.org   health check "Widget.example.org": current is false: status.phase == 'Up'
Terminating   Pod/gone             store       Deleting                deletion                  the object is being deleted
`
	code, out, errOut := runExplain("", "-f", writeFile(t, "objects.yaml", mixed), "--config", writeFile(t, "config.yaml", rulesOfWidgets))
	if code != 1 || errOut != "" {
		t.Errorf("exit code %d, error output %q", code, errOut)
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplainInJSON(t *testing.T) {
	const want = `{"apiVersion":"apps/v1","kind":"Deployment","namespace":"store","name":"web","state":"Ready","reason":"","message":"","serving":true,"suspended":false,"warning":false,"rule":"Deployment"}
{"apiVersion":"v1","kind":"ConfigMap","namespace":"store","name":"settings","state":"Ready","reason":"Exists","message":"","serving":false,"suspended":false,"warning":false,"rule":"ConfigMap"}
{"apiVersion":"example.org/v1","kind":"Widget","namespace":"store","name":"left","state":"Ready","reason":"","message":"","serving":false,"suspended":false,"warning":false,"rule":"user:Widget.example.org"}
{"apiVersion":"example.org/v1","kind":"Widget","namespace":"store","name":"right","state":"Failed","reason":"HealthCheckFailed","message":"health check \"Widget.example.org\": failed is true: has(status.error) && status.error != '<none>'","serving":false,"suspended":false,"warning":false,"rule":"user:Widget.example.org"}
{"apiVersion":"example.org/v1","kind":"Widget","namespace":"","name":"odd","state":"Pending","reason":"HealthCheckNotCurrent","message":"health check \"Widget.example.org\": current is false: status.phase == 'Up'","serving":false,"suspended":false,"warning":false,"rule":"user:Widget.example.org"}
{"apiVersion":"v1","kind":"Pod","namespace":"store","name":"gone","state":"Terminating","reason":"Deleting","message":"the object is being deleted","serving":false,"suspended":false,"warning":false,"rule":"deletion"}
`
	code, out, errOut := runExplain(mixed, "-f", "-", "-o", "json", "--config", writeFile(t, "config.yaml", rulesOfWidgets))
	if code != 1 || errOut != "" {
		t.Errorf("exit code %d, error output %q", code, errOut)
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExitCodesOfExplain(t *testing.T) {
	clearKubeconfig(t)
	const ready = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const notReady = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nstatus: {failed: 1, conditions: [{type: Failed, status: \"True\"}]}\n"
	good := writeFile(t, "good.yaml", ready)
	badExpression := writeFile(t, "config.yaml", configHeader+"healthCheckExprs:\n- {apiVersion: v1, kind: Pod, current: 'status.phase ='}\n- {apiVersion: v1, kind: Service, current: size(spec)}\n")
	cases := map[string]struct {
		in   string
		args []string
		code int
		// want is a regular expression for the whole error output.
		want string
	}{
		"all are Ready":              {ready + "---\n" + ready, []string{"-f", "-"}, 0, `^$`},
		"one is not":                 {ready + "---\n" + notReady, []string{"-f", "-"}, 1, `^$`},
		"files and input":            {notReady, []string{"-f", good, "-f", "-"}, 1, `^$`},
		"an empty list":              {"apiVersion: v1\nkind: List\nitems: []\n", []string{"-f", "-"}, 0, `^$`},
		"nothing":                    {"", []string{"-f", "-"}, 2, `^healthscope: cannot read the objects in "standard input": there is none\n$`},
		"nothing but comments":       {"# none\n---\n...\n", []string{"-f", "-"}, 2, `: there is none\n$`},
		"an unknown flag":            {ready, []string{"-f", "-", "--kubeconfig", "x"}, 2, `^healthscope: unknown flag: --kubeconfig\n$`},
		"a file without a flag":      {notReady, []string{good, "-"}, 1, `^$`},
		"a bad configuration":        {ready, []string{"-f", "-", "--config", writeFile(t, "config.yaml", configHeader+"healthCheckExprs: [{kind: Pod}]\n")}, 2, `healthCheckExprs\[0\].apiVersion: Required value.*healthCheckExprs\[0\].current: Required value`},
		"expressions that cannot":    {ready, []string{"-f", "-", "--config", badExpression}, 2, `^healthscope: cannot explain: cannot use configuration file ".*config.yaml": cannot use health check "Pod": current, line 1, column 14: Syntax error.*\ncannot explain: cannot use configuration file ".*": cannot use health check "Service": current: the expression gives a value of type int; .*\n$`},
		"an unreadable file":         {"\n---\na: b\n--- # second\na: b\nc: d: e\n", []string{"-f", "-"}, 2, `^healthscope: cannot read the objects in "standard input": document 2, line 6: mapping values are not allowed in this context\n$`},
		"unreadable JSON":            {"{\"a\": 1}\n{\"a\":\n \"b\",\n \"c\" 2,\n \"d\": 3}", []string{"-f", "-"}, 2, `document 2, line 4: invalid character '2' after object key\n$`},
		"JSON with an end too early": {"{\"a\": 1}\n{\"a\":\n", []string{"-f", "-"}, 2, `document 2, line 2: unexpected EOF\n$`},
		"a text":                     {ready + "---\nhello\n", []string{"-f", "-"}, 2, `document 2, line 4: it is a string; it must be an object\n$`},
		"an empty directory":         {"", []string{"-f", t.TempDir()}, 2, `there is no .yaml, .yml or .json file in directory ".*"\n$`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, _, errOut := runExplain(c.in, c.args...)
			if code != c.code || !regexp.MustCompile(c.want).MatchString(errOut) {
				t.Errorf("exit code %d, want %d; error output:\n%s\nwant:\n%s", code, c.code, errOut, c.want)
			}
		})
	}
}

func TestExplainReportsReadableAndUnreadableObjects(t *testing.T) {
	good := writeFile(t, "good.yaml", "kind: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	code, out, errOut := runExplain("", "-f", "absent.yaml", "-f", good)
	if code != 2 || !strings.Contains(out, "ConfigMap/a ") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	for _, want := range []string{"absent.yaml", `good.yaml": document 1, line `} {
		if !strings.Contains(errOut, want) {
			t.Errorf("there is nothing about %s in\n%s", want, errOut)
		}
	}
}

// TestAWorkloadIsExplainedWithItsPods: a workload is explained as a scope judges it. Pods that are not in the input, and objects
// that are there twice, have no effect.
func TestAWorkloadIsExplainedWithItsPods(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1}}
---
`
	const below = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, generation: 1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-1-a, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}]}, status: {phase: Running, containerStatuses: [{name: nginx, state: {waiting: {reason: CrashLoopBackOff}}}]}}
---
`
	const alone, withPods = `Pending Deployment/web - ReplicasNotReady Deployment 0 of 1 replicas are ready`, `Failed Deployment/web - CrashLoopBackOff Deployment container "nginx": CrashLoopBackOff`
	for name, c := range map[string]struct {
		in, want string
		n        int
	}{
		"alone":               {deployment, alone, 1},
		"with its pods":       {deployment + below, withPods, 1},
		"after its pods":      {below + deployment, withPods, 1},
		"twice with its pods": {deployment + deployment + below, alone, 2},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runExplain(c.in, "-f", "-")
			if strings.Count(strings.Join(strings.Fields(out), " "), c.want) != c.n || code != 1 || errOut != "" {
				t.Errorf("exit code %d, error output %q, output:\n%s\nwant %d of: %s", code, errOut, out, c.n, c.want)
			}
		})
	}
}

func TestExplainADirectory(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}",
		"a.json":      `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`,
		"c.yml":       "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n",
		"notes.txt":   "no objects",
		"sub/d.yaml":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}}",
		"e.yaml/keep": "a directory",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, explanations, errOut := explained(t, "", "-f", dir)
	if diff := cmp.Diff([]string{"a", "b", "c"}, namesOf(explanations)); diff != "" || code != 0 || errOut != "" {
		t.Errorf("exit code %d, error output %q, -want +got:\n%s", code, errOut, diff)
	}
}

// TestMalformedObjects: each malformed object is one line in the output, and Unknown.
func TestMalformedObjects(t *testing.T) {
	for name, in := range map[string]string{
		"no kind":               `{"apiVersion": "v1", "metadata": {"name": "a"}}`,
		"a kind that is none":   `{"apiVersion": "v1", "kind": 7}`,
		"a status that is none": `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": [1]}`,
		"a list in a list":      `{"apiVersion": "v1", "kind": "List", "items": [[]]}`,
		"null in a list":        `{"apiVersion": "v1", "kind": "List", "items": [null]}`,
		"an empty object":       `{}`,
		"an array of numbers":   `[7]`,
		"items that are none":   `{"apiVersion": "v1", "kind": "List", "items": 7, "status": "odd"}`,
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runExplain(in, "-f", "-", "-o", "json")
			var e explanation
			if err := json.Unmarshal([]byte(out), &e); err != nil || e.State != "Unknown" || e.Reason != "InvalidObject" || e.Message == "" || code != 1 || errOut != "" {
				t.Errorf("exit code %d, error output %q, output:\n%s", code, errOut, out)
			}
			var keys map[string]any
			if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) != 11 {
				t.Errorf("%d keys, want all 11: %s", len(keys), out)
			}
		})
	}
}

// TestIsList: an object whose kind only ends in List is not a list, and lists may be nested.
func TestIsList(t *testing.T) {
	const down = `{kind: Job, apiVersion: batch/v1, metadata: {name: a}, status: {failed: 1, conditions: [{type: Failed, status: "True"}]}}`
	cases := map[string]struct {
		in    string
		code  int
		names []string
	}{
		"a kind with such a name":     {`{apiVersion: resources.teleport.dev/v1, kind: TeleportAccessList, metadata: {name: ops}, status: {conditions: [{type: Ready, status: "False"}]}}`, 1, []string{"ops"}},
		"one with items and a name":   {`{apiVersion: example.org/v1, kind: PriceList, metadata: {name: p}, items: [7]}`, 0, []string{"p"}},
		"one with items and a spec":   {`{apiVersion: example.org/v1, kind: PriceList, spec: {}, items: [7]}`, 0, []string{""}},
		"one with items and a status": {`{apiVersion: example.org/v1, kind: PriceList, status: {}, items: [7]}`, 0, []string{""}},
		"items that are null":         {`{apiVersion: v1, kind: PodList, metadata: {resourceVersion: "1"}, items: null}`, 0, nil},
		"a list in a list":            {`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [` + down + `]}, {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: b}}]}]}`, 1, []string{"a", "b"}},
		"a list in an array":          {`[{apiVersion: v1, kind: List, items: [` + down + `]}]`, 1, []string{"a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, explanations, errOut := explained(t, c.in, "-f", "-")
			if diff := cmp.Diff(c.names, namesOf(explanations)); diff != "" || code != c.code || errOut != "" {
				t.Errorf("exit code %d, want %d; error output %q; -want +got:\n%s", code, c.code, errOut, diff)
			}
		})
	}
}

func TestListsOfOneKind(t *testing.T) {
	const in = `{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}]}`
	_, out, _ := runExplain(in+"\n---\n[{apiVersion: v1, kind: Secret, metadata: {name: c}}]\n", "-f", "-")
	for _, want := range []string{"ConfigMap/a", "Service/b", "Secret/c"} {
		if !strings.Contains(out, want+" ") {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
}

// TestExplainShowsNoSecrets: as in a cluster, rules do not see the data that monitors do not read.
func TestExplainShowsNoSecrets(t *testing.T) {
	config := writeFile(t, "config.yaml", configHeader+`healthCheckExprs:
- {apiVersion: v1, kind: Secret, current: data.password == 'x'}
- {apiVersion: v1, kind: ConfigMap, current: data.password == 'x'}
- {apiVersion: example.org/v1, kind: Widget, current: "spec.env.all(e, e.value == 'canary')"}
`)
	_, out, _ := runExplain(`
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {password: canary}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {password: canary}}
---
{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {env: [{name: PASSWORD, value: canary}]}, status: {}}
`, "-f", "-", "--config", config, "-o", "json")
	if n := strings.Count(out, `"reason":"HealthCheckError"`); n != 3 || strings.Contains(strings.ReplaceAll(out, "e.value == 'canary'", ""), "canary") {
		t.Errorf("got\n%s", out)
	}
}

func TestExplainTableHasNoControlCharacters(t *testing.T) {
	_, out, _ := runExplain("{apiVersion: v1, kind: ConfigMap, metadata: {name: \"a\\u001b[31mb\\nc\\td\"}}", "-f", "-")
	if !strings.Contains(out, "ConfigMap/a [31mb c d ") || strings.Count(out, "\n") != 2 {
		t.Errorf("got %q", out)
	}
}

// FuzzObjects checks that every input results in explanations or errors with a message, and that each is one line.
func FuzzObjects(f *testing.F) {
	f.Add(mixed)
	f.Add("{\"a\": 1}{\"b\"")
	f.Add("--- {a: b}\n...\n%YAML 1.2\n---\n- 1\n- {kind: PodList, items: [null]}\n")
	f.Add("a: &a [*a]\n\xff\x00")
	f.Add("\xef\xbb\xbf{kind: X}")
	f.Fuzz(func(t *testing.T, text string) {
		objects, problems := parseObjects([]byte(text))
		for _, p := range problems {
			if p.Error() == "" {
				t.Error("an error without words")
			}
		}
		var out bytes.Buffer
		for _, output := range []string{"table", "json"} {
			out.Reset()
			o := explainOptions{files: []string{"-"}, output: output}
			err := o.run(strings.NewReader(text), &out)
			if (exitCode(err) == exitUsage) != (len(problems) > 0) {
				t.Errorf("exit code %d with %v", exitCode(err), problems)
			}
		}
		if n := strings.Count(out.String(), "\n"); n != len(objects) {
			t.Errorf("%d objects give %d lines:\n%s", len(objects), n, out.String())
		}
	})
}

func TestNoStatusGracePeriod(t *testing.T) {
	const widget = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, creationTimestamp: %q}}\n"
	for created, want := range map[time.Time]string{time.Now(): "Pending", time.Now().Add(-time.Hour): "Ready"} {
		code, out, errOut := runExplain(fmt.Sprintf(widget, created.UTC().Format(time.RFC3339)), "-f", "-", "-o", "json")
		if errOut != "" || (code == 0) != (want == "Ready") || !strings.Contains(out, `"state":"`+want+`"`) {
			t.Errorf("created at %s: exit code %d, %s%s", created, code, out, errOut)
		}
	}
}
