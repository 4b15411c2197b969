package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

const argoFolder = "config/integrations/argocd"

// toLua converts a decoded JSON value to a Lua value, as Argo CD does.
func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		list := l.NewTable()
		for _, item := range v {
			list.Append(toLua(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, toLua(l, item))
		}
		return table
	default:
		return lua.LNil
	}
}

// argoHealth runs the script on an object and returns the status and the message.
func argoHealth(t *testing.T, script string, object any) (status, message string) {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	l := lua.NewState()
	defer l.Close()
	l.SetContext(t.Context())
	l.SetGlobal("obj", toLua(l, plain))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", l.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

func TestArgoCDSeesAScopeAsItIs(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, argoFolder, "health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	scope := func(generation int64, health corev1alpha2.Health, failed int32) corev1alpha2.HealthScope {
		return corev1alpha2.HealthScope{
			ObjectMeta: metav1.ObjectMeta{Name: "vfw", Generation: 3},
			Status: corev1alpha2.HealthScopeStatus{
				Health: health, ObservedGeneration: generation, Summary: corev1alpha2.MemberCounts{Total: 3, Failed: failed},
				Conditions: []metav1.Condition{{Type: "ClustersReachable", Message: "no"}, {Type: corev1alpha2.ConditionReady, Message: "what is the matter"}},
			},
		}
	}
	for name, c := range map[string]struct {
		object any
		want   string
	}{
		"without status":      {map[string]any{"metadata": map[string]any{"generation": 1}}, "Progressing"},
		"new":                 {map[string]any{"metadata": map[string]any{"generation": 1}, "status": map[string]any{"observedGeneration": -1}}, "Progressing"},
		"changed":             {scope(2, corev1alpha2.Healthy, 0), "Progressing"},
		"healthy":             {scope(3, corev1alpha2.Healthy, 0), "Healthy"},
		"healthy with losses": {scope(3, corev1alpha2.Healthy, 1), "Healthy"},
		"pending":             {scope(3, corev1alpha2.Unhealthy, 0), "Progressing"},
		"failed":              {scope(3, corev1alpha2.Unhealthy, 1), "Degraded"},
		"unknown":             {scope(3, corev1alpha2.UnknownHealth, 0), "Unknown"},
	} {
		status, message := argoHealth(t, string(script), c.object)
		if status != c.want || message == "" || message == "no" {
			t.Errorf("%s: Argo CD shows %q with the message %q, want %s with that of Ready", name, status, message, c.want)
		}
	}
}

func TestTheConfigMapForArgoCDHasTheScript(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, argoFolder, "health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, argoFolder, "argocd-cm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		t.Fatal(err)
	}
	key := "resource.customizations.health." + corev1alpha2.GroupVersion.Group + "_HealthScope"
	if config.Name != "argocd-cm" || config.Data[key] != string(script) {
		t.Errorf("%s/argocd-cm.yaml is another script than health.lua, or not under the key %s of argocd-cm", argoFolder, key)
	}
}
