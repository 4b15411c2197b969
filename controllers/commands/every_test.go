package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every command, with good input, bad input, no input, no cluster and no rights: exact text and exit code. What a command prints of
// good input, and what it says without rights in a cluster that has them, is in its own tests where it needs an API server.
func TestEveryCommand(t *testing.T) {
	alone(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		if err := json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: statusType, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "no right", Code: http.StatusForbidden,
		}); err != nil {
			t.Errorf("cannot answer: %v", err)
		}
	}))
	t.Cleanup(refusing.Close)
	forbidden := write(t, "kubeconfig", strings.ReplaceAll(contexts, "https://hub:6443", refusing.URL))
	pod := write(t, "pod.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	config := write(t, "config.yaml", head)
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args   string
		code   int
		out    string
		errOut string
	}{
		{"controller stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope controller\"\n"},
		{"controller", 2, "", "healthscope: cannot run the controller: cannot find out how to reach the cluster: there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG\n"},
		{"controller --config NONE", 2, "", "healthscope: cannot run the controller: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"monitor", 2, "", "healthscope: cannot run the monitor: cannot find out how to reach the cluster: there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG\n"},
		{"monitor --config NONE", 2, "", "healthscope: cannot run the monitor: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"explain", 2, "", "healthscope: cannot explain: give a file, or - for standard input\n"},
		{"explain POD", 0, "STATE   OBJECT        NAMESPACE   REASON   RULE        MESSAGE\nReady   ConfigMap/a   -           Exists   ConfigMap   -\n", ""},
		{"explain NONE", 2, "", "healthscope: cannot read the objects: stat NONE: no such file or directory\n"},
		{"explain POD -o xml", 2, "", "healthscope: cannot explain: --output is \"xml\"; it must be table, json or yaml\n"},
		{"explain POD --config NONE", 2, "", "healthscope: cannot explain: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"aai plan", 2, "", "healthscope: cannot plan: the configuration has no section inventory\n"},
		{"aai plan --config NONE", 2, "", "healthscope: cannot plan: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"aai plan --config CONFIG", 2, "", "healthscope: cannot plan: the configuration has no section inventory\n"},
		{"clusters", 2, "", "healthscope: cannot find out how to reach the hub: there is no kubeconfig file, or it is empty\n"},
		{"clusters -o xml", 2, "", "healthscope: --output is \"xml\"; it must be table, wide, json or yaml\n"},
		{"clusters --hub-kubeconfig NONE", 2, "", "healthscope: cannot find out how to reach the hub: stat NONE: no such file or directory\n"},
		{"clusters list", 2, "", "healthscope: cannot find out how to reach the hub: there is no kubeconfig file, or it is empty\n"},
		{"clusters add", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"clusters add edge01", 2, "", "healthscope: cannot add cluster \"edge01\": --context is missing: it says which cluster is meant\n"},
		{"clusters add edge01 --context edge", 2, "", "healthscope: cannot add cluster \"edge01\": cannot find out how to reach the member: context \"edge\" does not exist\n"},
		{"clusters add a/b --context edge --kubeconfig FORBIDDEN", 2, "", "healthscope: cannot add cluster \"a/b\": invalid name \"a/b\": want 1 to 253 letters, digits, dots, underscores, hyphens and plus signs, with a letter or digit at each end and after each dot, such as provider+edge01\n"},
		{"clusters add edge01 --context edge --kubeconfig FORBIDDEN --hub-kubeconfig NONE", 2, "", "healthscope: cannot add cluster \"edge01\": cannot find out how to reach the hub: stat NONE: no such file or directory\n"},
		{"clusters remove", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"clusters remove edge01", 2, "", "healthscope: cannot remove cluster \"edge01\": --context is missing: it says where the hub's account is to be deleted; --keep-member leaves it\n"},
		{"clusters remove edge01 --keep-member", 2, "", "healthscope: cannot remove cluster \"edge01\": cannot find out how to reach the hub: there is no kubeconfig file, or it is empty\n"},
		{"clusters remove edge01 --keep-member --context edge", 2, "", "healthscope: cannot remove cluster \"edge01\": --keep-member and --context exclude each other\n"},
		{"context apply", 2, "", "healthscope: required flag(s) \"filename\" not set\n"},
		{"context apply -f NONE", 2, "", "healthscope: the configuration \"\" has no section appContext, which says where contexts are\n"},
		{"context apply --config CONFIG -f NONE", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which says where contexts are\n"},
		{"context plan", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"context plan 1", 2, "", "healthscope: the configuration \"\" has no section appContext, which says where contexts are\n"},
		{"context instantiate", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"context instantiate --config NONE 1", 2, "", "healthscope: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"context terminate", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"context terminate --config CONFIG 1", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which says where contexts are\n"},
		{"context list", 2, "", "healthscope: the configuration \"\" has no section appContext, which says where contexts are\n"},
		{"context list stray", 2, "", "healthscope: accepts 0 arg(s), received 1\n"},
		{"context list --config NONE", 2, "", "healthscope: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"context show", 2, "", "healthscope: accepts 1 arg(s), received 0\n"},
		{"context show --config CONFIG 1", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which says where contexts are\n"},
		{"status", 2, "", "healthscope: cannot find out how to reach the API server: there is no kubeconfig file, or it is empty\n"},
		{"status a/b/c", 2, "", "healthscope: \"a/b/c\" is no subject: it must be PROJECT/COMPOSITE-APP/VERSION/GROUP, PROVIDER+CLUSTER, NAMESPACE/NAME or NAME\n"},
		{"status -o xml", 2, "", "healthscope: --output is \"xml\"; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE\n"},
		{"status --kubeconfig NONE", 2, "", "healthscope: cannot find out how to reach the API server: stat NONE: no such file or directory\n"},
		{"status --kubeconfig FORBIDDEN", 3, "", "healthscope: cannot get the status of the HealthScopes in namespace default: no right\n"},
		{"status web --kubeconfig FORBIDDEN -n shop", 3, "", "healthscope: cannot get the status of HealthScope shop/web: no right\n"},
		{"status retail/shop/v2/autumn", 2, "", "healthscope: cannot find out how to reach the controller: there is no kubeconfig file, or it is empty\n"},
		{"status retail/shop/v2/autumn --kubeconfig FORBIDDEN", 3, "", "healthscope: cannot get the status of deployment intent group retail/shop/v2/autumn: cannot ask the server at https://healthscope-controller.healthscope-system: the kubeconfig has no token to show to the controller, and none of ServiceAccount \"healthscope-system/healthscope-status-reader\" can be had: no right\n"},
		{"support-bundle", 2, "", "healthscope: cannot write a support bundle: cannot find out how to reach the cluster: there is no kubeconfig file, or it is empty\n"},
		{"support-bundle stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope support-bundle\"\n"},
		{"support-bundle --log-lines -1", 2, "", "healthscope: cannot write a support bundle: --log-lines is -1; it must not be negative\n"},
		{"support-bundle --kubeconfig NONE", 2, "", "healthscope: cannot write a support bundle: cannot find out how to reach the cluster: stat NONE: no such file or directory\n"},
		{"version -o xml", 2, "", "healthscope: cannot print the version: --output is \"xml\"; it must be text, json or yaml\n"},
		{"version stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope version\"\n"},
		{"stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope\"\n"},
		{"--color pink", 2, "", "healthscope: invalid argument \"pink\" for \"--color\" flag: it must be auto, always or never\n"},
		{"aai stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope aai\"\n"},
		{"context stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope context\"\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errOut := run(t, strings.Fields(strings.NewReplacer("FORBIDDEN", forbidden, "POD", pod, "CONFIG", config, "NONE", none).Replace(c.args))...)
			out, errOut = strings.ReplaceAll(out, none, "NONE"), strings.NewReplacer(none, "NONE", config, "CONFIG", refusing.URL, "SERVER").Replace(errOut)
			if code != c.code || out != c.out || errOut != c.errOut {
				t.Errorf("got\n\t{%q, %d, %q, %q}\nwant\n\t{%q, %d, %q, %q}", c.args, code, out, errOut, c.args, c.code, c.out, c.errOut)
			}
		})
	}
}
