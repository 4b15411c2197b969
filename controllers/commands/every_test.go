package commands

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryCommand runs every command with good input, bad input, no input, no cluster and no rights, and checks the exact
// output and the exit code. If a command needs an API server for good input, or for missing rights in a cluster with RBAC, its
// own tests check these outputs.
func TestEveryCommand(t *testing.T) {
	clearKubeconfig(t)
	hub, member := refusingCluster(t), refusingCluster(t)
	forbidden := writeFile(t, "kubeconfig", strings.NewReplacer(`{server: "https://hub:6443"}`, clusterOf(hub), `{server: "https://edge01.example.org:6443"}`, clusterOf(member)).Replace(contexts))
	pod := writeFile(t, "pod.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	crashing := writeFile(t, "web.yaml", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}, spec: {replicas: 1}, status: {replicas: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-1-a, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}]}, status: {phase: Running, containerStatuses: [{name: nginx, state: {waiting: {reason: CrashLoopBackOff}}}]}}
`)
	config := writeFile(t, "config.yaml", configHeader)
	notYAML := writeFile(t, "kubeconfig", "apiVersion: [")
	noContext := writeFile(t, "kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: absent\n")
	unknownField := writeFile(t, "config.yaml", configHeader+"inventry: {}\n")
	none := filepath.Join(t.TempDir(), "none")
	dead := writeFile(t, "kubeconfig", strings.ReplaceAll(contexts, "https://hub:6443", "https://127.0.0.1:1"))
	refused := writeFile(t, "config.yaml", configHeader+"appContext: {endpoints: ['"+refusingEtcd(t)+"']}\n")
	noEtcd := writeFile(t, "config.yaml", configHeader+"appContext: {endpoints: ['http://127.0.0.1:1'], timeoutSeconds: 1}\n")
	composite := writeFile(t, "shop.yaml", "project: retail\nname: shop\nversion: v1\ndeploymentIntentGroup: autumn\nnamespace: shop\napps:\n- {name: web, clusters: [provider+edge01], manifests: ["+pod+"]}\n")
	inventory := writeFile(t, "config.yaml", configHeader+"clusterName: provider+hub\ninventory:\n  url: http://127.0.0.1:1\n  regions: [{cluster: '*', cloudOwner: o, cloudRegionId: r, tenantId: t}]\n")
	// named replaces the names in rows by values, and names replaces the values in the output by names.
	var named, names []string
	for name, value := range map[string]string{
		"FORBIDDEN": forbidden, "DEAD": dead, "REFUSED": refused, "NOETCD": noEtcd, "COMPOSITE": composite, "INVENTORY": inventory,
		"NOTYAML": notYAML, "NOCONTEXT": noContext, "UNKNOWNFIELD": unknownField,
		"POD": pod, "CRASHING": crashing, "CONFIG": config, "NONE": none, "BUNDLE": filepath.Join(t.TempDir(), "bundle"), "HUB": hub.URL, "MEMBER": member.URL,
	} {
		named, names = append(named, name, value), append(names, value, name)
	}
	given, shown := strings.NewReplacer(named...), strings.NewReplacer(names...)
	has := map[string]bool{} // commands with a column
	for _, c := range []struct {
		args   string
		code   int
		out    string
		errOut string
	}{
		{"contoller", 2, "", "healthscope: unknown command \"contoller\" for \"healthscope\"\n\nDid you mean this?\n\tcontroller\n\n"},
		{"controller --confg x", 2, "", "healthscope: unknown flag: --confg\n"},
		{"controller --log-format xml", 2, "", "healthscope: cannot run the controller: --log-format is \"xml\"; it must be text or json\n"},
		{"--version", 0, versionLine(), ""},
		{"controller --print-config --config UNKNOWNFIELD", 2, "", "healthscope: cannot run the controller: cannot use configuration file \"UNKNOWNFIELD\": unknown field \"inventry\"\n"},
		{"monitor --kubeconfig NONE", 2, "", "healthscope: cannot run the monitor: cannot find out how to reach the cluster: stat NONE: no such file or directory\n"},
		{"controller --kubeconfig NOTYAML", 2, "", "healthscope: cannot run the controller: cannot find out how to reach the cluster: error loading config file \"NOTYAML\": yaml: line 1: did not find expected node content\n"},
		{"controller --kubeconfig NOCONTEXT", 2, "", "healthscope: cannot run the controller: cannot find out how to reach the cluster: invalid configuration: [context was not found for specified context: absent, cluster has no server defined]\n"},
		{"monitor -v -1", 2, "", "healthscope: cannot run the monitor: --verbosity is -1; it must not be negative\n"},
		{"monitor -v loud", 2, "", "healthscope: invalid argument \"loud\" for \"-v, --verbosity\" flag: strconv.ParseInt: parsing \"loud\": invalid syntax\n"},
		{"monitor --config UNKNOWNFIELD", 2, "", "healthscope: cannot run the monitor: cannot use configuration file \"UNKNOWNFIELD\": unknown field \"inventry\"\n"},
		{"support-bundle --kubeconfig DEAD -o NONE/bundle.tar.gz", 1, "", "healthscope: cannot write a support bundle: cannot create the file: open NONE/bundle.tar.gz: no such file or directory\n"},
		{"clusters add edge01 --context insecure --kubeconfig FORBIDDEN", 2, "", "healthscope: cannot add cluster \"edge01\": cannot use context \"insecure\": insecure-skip-tls-verify is set: the hub talks to servers only that it can verify; put the authority's certificate into certificate-authority-data\n"},
		{"clusters add edge01 --context plain --kubeconfig FORBIDDEN", 2, "", "healthscope: cannot add cluster \"edge01\": cannot use the kubeconfig: clusters[edge01].cluster.server: Forbidden: it must be an https URL, also on the hub's own machine; its scheme is \"http\"\n"},
		{"clusters add edge01 --context hub --kubeconfig FORBIDDEN --hub-kubeconfig FORBIDDEN", 2, "", "warning: HUB is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\nhealthscope: cannot add cluster \"edge01\": context \"hub\" is of the hub itself, which is its own member already\n"},
		{"clusters add edge01 --context edge --kubeconfig FORBIDDEN --token-lifetime 1m", 2, "", "healthscope: cannot add cluster \"edge01\": invalid lifetime 1m0s of the token: want 10m0s to 1193046h28m16s\n"},
		{"clusters add a/b --context plain --kubeconfig FORBIDDEN --namespaces A", 2, "", "healthscope: cannot add cluster \"a/b\": [invalid name \"a/b\": want 1 to 253 letters, digits, dots, underscores, hyphens and plus signs, with a letter or digit at each end and after each dot, such as provider+edge01, invalid namespace \"A\", cannot use the kubeconfig: clusters[a/b].cluster.server: Forbidden: it must be an https URL, also on the hub's own machine; its scheme is \"http\"]\n"},
		{"controller stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope controller\"\n"},
		{"controller", 2, "", "healthscope: cannot run the controller: cannot find out how to reach the cluster: there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG\n"},
		{"controller --config NONE", 2, "", "healthscope: cannot run the controller: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"monitor", 2, "", "healthscope: cannot run the monitor: cannot find out how to reach the cluster: there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG\n"},
		{"monitor --config NONE", 2, "", "healthscope: cannot run the monitor: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"explain", 2, "", "healthscope: cannot explain: give a file, or - for standard input\n"},
		{"explain POD", 0, "STATE   OBJECT        NAMESPACE   REASON   RULE        MESSAGE\nReady   ConfigMap/a   -           Exists   ConfigMap   -\n", ""},
		{"explain CRASHING", 1, `STATE     OBJECT             NAMESPACE   REASON             RULE         MESSAGE
Failed    Deployment/web     -           CrashLoopBackOff   Deployment   container "nginx": CrashLoopBackOff
Pending   ReplicaSet/web-1   -           ReplicasNotReady   ReplicaSet   0 of 1 replicas are ready
Failed    Pod/web-1-a        -           CrashLoopBackOff   Pod          container "nginx": CrashLoopBackOff
`, ""},
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
		{"clusters add", 2, "", "healthscope: usage: healthscope clusters add NAME --context CONTEXT [flags]; the arguments given are []\n"},
		{"clusters add edge01", 2, "", "healthscope: cannot add cluster \"edge01\": --context is missing: it says which cluster is meant\n"},
		{"clusters add edge01 --context edge", 2, "", "healthscope: cannot add cluster \"edge01\": cannot find out how to reach the member: context \"edge\" does not exist\n"},
		{"clusters add a/b --context edge --kubeconfig FORBIDDEN", 2, "", "healthscope: cannot add cluster \"a/b\": invalid name \"a/b\": want 1 to 253 letters, digits, dots, underscores, hyphens and plus signs, with a letter or digit at each end and after each dot, such as provider+edge01\n"},
		{"clusters add edge01 --context edge --kubeconfig FORBIDDEN --hub-kubeconfig NONE", 2, "", "warning: MEMBER is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\nhealthscope: cannot add cluster \"edge01\": cannot find out how to reach the hub: stat NONE: no such file or directory\n"},
		{"clusters remove", 2, "", "healthscope: usage: healthscope clusters remove NAME [flags]; the arguments given are []\n"},
		{"clusters remove edge01", 2, "", "healthscope: cannot remove cluster \"edge01\": --context is missing: it says where the hub's account is to be deleted; --keep-member leaves it\n"},
		{"clusters remove edge01 --keep-member", 2, "", "healthscope: cannot remove cluster \"edge01\": cannot find out how to reach the hub: there is no kubeconfig file, or it is empty\n"},
		{"clusters remove edge01 --keep-member --context edge", 2, "", "healthscope: cannot remove cluster \"edge01\": --keep-member and --context exclude each other\n"},
		{"context apply", 2, "", "healthscope: required flag(s) \"filename\" not set\n"},
		{"context apply -f NONE", 2, "", "healthscope: the configuration \"\" has no section appContext, which names the etcd with the contexts\n"},
		{"context apply --config CONFIG -f NONE", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"context plan", 2, "", "healthscope: usage: healthscope context plan ID [flags]; the arguments given are []\n"},
		{"context plan 1", 2, "", "healthscope: the configuration \"\" has no section appContext, which names the etcd with the contexts\n"},
		{"context instantiate", 2, "", "healthscope: usage: healthscope context instantiate ID [flags]; the arguments given are []\n"},
		{"context instantiate --config NONE 1", 2, "", "healthscope: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"context terminate", 2, "", "healthscope: usage: healthscope context terminate ID [flags]; the arguments given are []\n"},
		{"context terminate --config CONFIG 1", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"context list", 2, "", "healthscope: the configuration \"\" has no section appContext, which names the etcd with the contexts\n"},
		{"context list stray", 2, "", "healthscope: usage: healthscope context list [flags]; the arguments given are [\"stray\"]\n"},
		{"context show", 2, "", "healthscope: usage: healthscope context show ID [flags]; the arguments given are []\n"},
		{"context show --config CONFIG 1", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"status", 2, "", "healthscope: cannot find out how to reach the API server: there is no kubeconfig file, or it is empty\n"},
		{"status a/b/c", 2, "", "healthscope: \"a/b/c\" is no subject: it must be PROJECT/COMPOSITE-APP/VERSION/GROUP, PROVIDER+CLUSTER, NAMESPACE/NAME or NAME\n"},
		{"status -o xml", 2, "", "healthscope: --output is \"xml\"; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE\n"},
		{"status --kubeconfig NONE", 2, "", "healthscope: cannot find out how to reach the API server: stat NONE: no such file or directory\n"},
		{"status --kubeconfig FORBIDDEN", 3, "", "healthscope: cannot get the status of the HealthScopes in namespace default: no right\n"},
		{"status web --kubeconfig FORBIDDEN -n shop", 3, "", "healthscope: cannot get the status of HealthScope shop/web: no right\n"},
		{"status retail/shop/v2/autumn", 2, "", "healthscope: cannot find out how to reach the controller: there is no kubeconfig file, or it is empty\n"},
		{"status retail/shop/v2/autumn --kubeconfig FORBIDDEN", 3, "", "healthscope: cannot get the status of deployment intent group retail/shop/v2/autumn: cannot ask the server at https://healthscope-controller.healthscope-system: cannot find the controller in namespace \"healthscope-system\": no right\n"},
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
		{"aai plan --config INVENTORY", 2, "", "healthscope: cannot plan: cannot find out how to reach the cluster: there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG\n"},
		{"aai plan --config INVENTORY --kubeconfig FORBIDDEN", 3, "", "healthscope: cannot plan: cannot list HealthScopes: no right\n"},
		{"aai plan --config INVENTORY --kubeconfig DEAD", 3, "", "healthscope: cannot plan: cannot list HealthScopes: failed to get server groups: Get \"https://127.0.0.1:1/api\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"clusters --hub-kubeconfig FORBIDDEN", 3, "", "healthscope: cannot list the clusters: cannot read ConfigMap \"healthscope-clusters/healthscope-clusters\": no right\n"},
		{"clusters --hub-kubeconfig DEAD", 3, "", "healthscope: cannot list the clusters: cannot read ConfigMap \"healthscope-clusters/healthscope-clusters\": failed to get server groups: Get \"https://127.0.0.1:1/api?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"clusters list --hub-kubeconfig FORBIDDEN", 3, "", "healthscope: cannot list the clusters: cannot read ConfigMap \"healthscope-clusters/healthscope-clusters\": no right\n"},
		{"clusters list stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope clusters list\"\n"},
		{"clusters list --hub-kubeconfig DEAD", 3, "", "healthscope: cannot list the clusters: cannot read ConfigMap \"healthscope-clusters/healthscope-clusters\": failed to get server groups: Get \"https://127.0.0.1:1/api?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"clusters add edge01 --context edge --kubeconfig FORBIDDEN --hub-kubeconfig FORBIDDEN", 1, "", "warning: MEMBER is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\nhealthscope: cannot add cluster \"edge01\": hub: cannot find the Secrets of clusters: no right\n"},
		{"clusters add edge01 --context hub --kubeconfig DEAD --hub-kubeconfig FORBIDDEN", 1, "", "warning: https://127.0.0.1:1 is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\nhealthscope: cannot add cluster \"edge01\": hub: cannot find the Secrets of clusters: no right\n"},
		{"clusters remove edge01 --keep-member --hub-kubeconfig FORBIDDEN", 1, "", "deleting the Secret of cluster \"edge01\" in HUB\nhealthscope: cannot remove cluster \"edge01\": hub: cannot find the Secrets of clusters: no right\n"},
		{"clusters remove edge01 --keep-member --hub-kubeconfig DEAD", 1, "", "deleting the Secret of cluster \"edge01\" in https://127.0.0.1:1\nhealthscope: cannot remove cluster \"edge01\": hub: cannot find the Secrets of clusters: failed to get server groups: Get \"https://127.0.0.1:1/api?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"clusters remove edge01 --context edge --kubeconfig FORBIDDEN --hub-kubeconfig FORBIDDEN", 1, "", "deleting the Secret of cluster \"edge01\" in HUB, then the hub's account and rights in MEMBER\nhealthscope: cannot remove cluster \"edge01\": hub: cannot find the Secrets of clusters: no right\n"},
		{"context apply --config REFUSED -f COMPOSITE", 3, "", "healthscope: cannot make the context of \"COMPOSITE\": cannot create context: Etcd denies access: etcdserver: permission denied\n"},
		{"context apply --config NOETCD -f COMPOSITE", 3, "", "healthscope: cannot make the context of \"COMPOSITE\": parts of it may be left in etcd: cannot create context: Etcd is not available: context deadline exceeded\n"},
		{"context apply --config NOETCD -f COMPOSITE --timeout 100ms", 3, "", "healthscope: cannot make the context of \"COMPOSITE\": parts of it may be left in etcd: cannot create context: context deadline exceeded\n"},
		{"context apply --config REFUSED -f POD", 2, "", "healthscope: cannot read composite app \"POD\": error unmarshaling JSON: while decoding JSON: json: unknown field \"apiVersion\"\n"},
		{"context apply --config REFUSED -f NONE", 2, "", "healthscope: cannot read the composite app: open NONE: no such file or directory\n"},
		{"context plan --config REFUSED --hub-kubeconfig FORBIDDEN 1", 3, "", "healthscope: cannot read context \"1\": Etcd denies access: etcdserver: permission denied\n"},
		{"context plan --config NOETCD --hub-kubeconfig FORBIDDEN 1", 3, "", "healthscope: cannot read context \"1\": Etcd is not available: context deadline exceeded\n"},
		{"context instantiate --config REFUSED 1", 3, "", "healthscope: cannot add event \"Instantiate\" to context \"1\": cannot read context \"1\": Etcd denies access: etcdserver: permission denied\n"},
		{"context instantiate --config NOETCD 1", 3, "", "healthscope: cannot add event \"Instantiate\" to context \"1\": cannot read context \"1\": Etcd is not available: context deadline exceeded\n"},
		{"context terminate --config REFUSED 1", 3, "", "healthscope: cannot add event \"Terminate\" to context \"1\": cannot read context \"1\": Etcd denies access: etcdserver: permission denied\n"},
		{"context terminate --config NOETCD 1", 3, "", "healthscope: cannot add event \"Terminate\" to context \"1\": cannot read context \"1\": Etcd is not available: context deadline exceeded\n"},
		{"context update", 2, "", "healthscope: usage: healthscope context update FROM TO [flags]; the arguments given are []\n"},
		{"context update --config CONFIG 1 2", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"context update --config REFUSED 1 2", 3, "", "healthscope: cannot add event \"Update\" to context \"2\": cannot read context \"2\": Etcd denies access: etcdserver: permission denied\n"},
		{"context update --config NOETCD 1 2", 3, "", "healthscope: cannot add event \"Update\" to context \"2\": cannot read context \"2\": Etcd is not available: context deadline exceeded\n"},
		{"context rollback", 2, "", "healthscope: usage: healthscope context rollback FROM TO [flags]; the arguments given are []\n"},
		{"context rollback --config CONFIG 1 2", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"context rollback --config REFUSED 1 2", 3, "", "healthscope: cannot add event \"Update\" to context \"2\": cannot read context \"2\": Etcd denies access: etcdserver: permission denied\n"},
		{"context rollback --config NOETCD 1 2", 3, "", "healthscope: cannot add event \"Update\" to context \"2\": cannot read context \"2\": Etcd is not available: context deadline exceeded\n"},
		{"context stop", 2, "", "healthscope: usage: healthscope context stop ID [flags]; the arguments given are []\n"},
		{"context stop --config CONFIG 1", 2, "", "healthscope: the configuration \"CONFIG\" has no section appContext, which names the etcd with the contexts\n"},
		{"context stop --config REFUSED 1", 3, "", "healthscope: cannot stop context \"1\": cannot read context \"1\": Etcd denies access: etcdserver: permission denied\n"},
		{"context stop --config NOETCD 1", 3, "", "healthscope: cannot stop context \"1\": cannot read context \"1\": Etcd is not available: context deadline exceeded\n"},
		{"context list --config REFUSED", 3, "", "healthscope: cannot find contexts: Etcd denies access: etcdserver: permission denied\n"},
		{"context list --config NOETCD", 3, "", "healthscope: cannot find contexts: Etcd is not available: context deadline exceeded\n"},
		{"context show --config REFUSED 1", 3, "", "healthscope: cannot read context \"1\": Etcd denies access: etcdserver: permission denied\n"},
		{"context show --config NOETCD 1", 3, "", "healthscope: cannot read context \"1\": Etcd is not available: context deadline exceeded\n"},
		{"status --kubeconfig DEAD", 3, "", "healthscope: cannot get the status of the HealthScopes in namespace default: cannot ask the server at https://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"status retail/shop/v2/autumn --kubeconfig DEAD", 3, "", "healthscope: cannot get the status of deployment intent group retail/shop/v2/autumn: cannot ask the server at https://healthscope-controller.healthscope-system: cannot find the controller in namespace \"healthscope-system\": Get \"https://127.0.0.1:1/api/v1/namespaces/healthscope-system/pods?labelSelector=app.kubernetes.io%2Fname%3Dhealthscope%2Capp.kubernetes.io%2Fcomponent%3Dcontroller\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"support-bundle --config NONE", 2, "", "healthscope: cannot write a support bundle: cannot read the configuration file: open NONE: no such file or directory\n"},
		{"support-bundle --metrics-token-file NONE", 2, "", "healthscope: cannot write a support bundle: cannot read --metrics-token-file: open NONE: no such file or directory\n"},
		{"support-bundle --kubeconfig FORBIDDEN -o BUNDLE1", 0, "", "BUNDLE1: 13 files; not everything could be read: see errors.txt in it\n"},
		{"support-bundle --kubeconfig DEAD -o BUNDLE2", 0, "", "BUNDLE2: 13 files; not everything could be read: see errors.txt in it\n"},
		{"clusters add edge01 --context edge --kubeconfig FORBIDDEN --hub-kubeconfig DEAD", 1, "", "warning: MEMBER is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\nhealthscope: cannot add cluster \"edge01\": hub: cannot find the Secrets of clusters: failed to get server groups: Get \"https://127.0.0.1:1/api?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"completion stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope completion\"\n"},
		{"monitor stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope monitor\"\n"},
		{"clusters stray", 2, "", "healthscope: unknown command \"stray\" for \"healthscope clusters\"\n"},
	} {
		command, args, _ := NewCommand().Find(strings.Fields(c.args)) // If a word is no command, it is an argument of the command before it.
		for column, is := range map[string]bool{
			"no input":   len(args) == 0,
			"bad input":  len(args) > 0 && c.code == exitUsage,
			"no cluster": strings.Contains(c.args, "DEAD") || strings.Contains(c.args, "NOETCD"),
			"no rights":  c.code != exitUsage && (strings.Contains(c.args, "FORBIDDEN") || strings.Contains(c.args, "REFUSED")),
		} {
			has[command.CommandPath()+" with "+column] = has[command.CommandPath()+" with "+column] || is
		}
		t.Run(c.args, func(t *testing.T) {
			code, out, errOut := run(t, strings.Fields(given.Replace(c.args))...)
			out, errOut = shown.Replace(out), shown.Replace(errOut)
			if code != c.code || out != c.out || errOut != c.errOut {
				t.Errorf("got\n\t{%q, %d, %q, %q}\nwant\n\t{%q, %d, %q, %q}", c.args, code, out, errOut, c.args, c.code, c.out, c.errOut)
			}
		})
	}
	for _, command := range allCommands(NewCommand())[1:] {
		for _, column := range columnsOf(command) {
			if at := command.CommandPath() + " with " + column; !has[at] {
				t.Errorf("the table has no row of %s", at)
			}
		}
	}
}

// columnsOf returns the columns of the table that a command needs, besides good input. Some commands need neither cluster nor
// rights. TestProgramsWithoutClusterOrRights tests controller and monitor, which keep retrying without them.
func columnsOf(command *cobra.Command) []string {
	switch command.Name() {
	case "aai", "context", "version": // The first two print their help, and the last one the version.
		return []string{"bad input"}
	case "controller", "explain", "monitor":
		return []string{"no input", "bad input"}
	}
	return []string{"no input", "bad input", "no cluster", "no rights"}
}

// refusingCluster serves an API server that allows discovery, and rejects all other requests.
func refusingCluster(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, is := map[string]any{
			"/api":                        metav1.APIVersions{Versions: []string{"v1"}},
			"/api/v1":                     metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true}}},
			"/apis":                       metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "core.oam.dev", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "core.oam.dev/v1alpha2", Version: "v1alpha2"}}}}},
			"/apis/core.oam.dev/v1alpha2": metav1.APIResourceList{GroupVersion: "core.oam.dev/v1alpha2", APIResources: []metav1.APIResource{{Name: "healthscopes", Kind: "HealthScope", Namespaced: true}}},
		}[r.URL.Path]
		if !is {
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{TypeMeta: statusType, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "no right", Code: http.StatusForbidden}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Errorf("cannot answer: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// clusterOf returns the cluster entry of a kubeconfig file for a server.
func clusterOf(server *httptest.Server) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf("{server: %q, certificate-authority-data: %s}", server.URL, base64.StdEncoding.EncodeToString(authority))
}

// refusingEtcd serves an etcd that rejects every request, and returns its URL.
func refusingEtcd(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return rpctypes.ErrGRPCPermissionDenied }))
	go func() { _ = server.Serve(listener) }() // It ends when it is stopped.
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}
