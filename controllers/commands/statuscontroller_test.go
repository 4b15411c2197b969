package commands

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/healthscope/healthscope/e2e/kubelet"
)

// statusType is the type of an API server's error responses.
var statusType = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}

// controllerCluster is the API server of a cluster in which a controller serves the status REST API of a hub.
type controllerCluster struct {
	*httptest.Server
	// ready is true if its pod is ready.
	ready bool
	// accounts are the tokens of ServiceAccounts by name.
	accounts map[string]string
	// forbidden is a path to which access is denied.
	forbidden string
}

func newControllerCluster(t *testing.T, h *statusHub) *controllerCluster {
	t.Helper()
	at, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	c := &controllerCluster{ready: true, accounts: map[string]string{defaultServiceAccount: "friend"}}
	answer := func(w http.ResponseWriter, code int, document any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Errorf("cannot answer: %v", err)
		}
	}
	var forwarding sync.WaitGroup
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const root = "/api/v1/namespaces/healthscope-system/"
		path, found := strings.CutPrefix(r.URL.Path, root)
		account, isToken := strings.CutSuffix(strings.TrimPrefix(path, "serviceaccounts/"), "/token")
		switch {
		case c.forbidden != "" && strings.Contains(path, c.forbidden):
			answer(w, http.StatusForbidden, metav1.Status{TypeMeta: statusType, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "forbidden: " + c.forbidden, Code: http.StatusForbidden})
		case found && path == "pods":
			status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[c.ready]
			answer(w, http.StatusOK, corev1.PodList{Items: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "healthscope-system", Name: "hub-1"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 1}, {Name: apiPortName, ContainerPort: int32(port)}}}}},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
			}}})
		case wsstream.IsWebSocketRequest(r): // As API servers before Kubernetes 1.31, for which ServePortForward is all there is.
			http.Error(w, "unknown protocol", http.StatusBadRequest)
		case path == "pods/hub-1/portforward":
			forwarding.Add(1)
			defer forwarding.Done()
			kubelet.ServePortForward(w, r, "hub-1", func(int32) (string, error) { return at.Host, nil })
		case isToken && c.accounts[account] != "":
			answer(w, http.StatusCreated, authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: c.accounts[account], ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}})
		default:
			answer(w, http.StatusNotFound, metav1.Status{TypeMeta: statusType, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Message: path + " not found", Code: http.StatusNotFound})
		}
	}))
	t.Cleanup(func() {
		c.Close()
		forwarding.Wait() // The server has released these connections.
	})
	return c
}

// kubeconfig returns a kubeconfig file with a user of the cluster.
func (c *controllerCluster) kubeconfig(t *testing.T, user string) string {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "k", "user": "u"}}},
		"clusters": []any{map[string]any{"name": "k", "cluster": map[string]any{"server": c.URL, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "u", "user": json.RawMessage(user)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "kubeconfig", string(config))
}

// TestStatusThroughAPortForward: without --server the command reaches the controller through a port-forward, with a token of the
// kubeconfig or of a ServiceAccount.
func TestStatusThroughAPortForward(t *testing.T) {
	const withToken, withoutToken = `{"token":"friend"}`, `{"username":"a","password":"b"}`
	inBonn := []string{"--cluster", bonn}
	for name, c := range map[string]struct {
		change  func(*controllerCluster)
		user    string
		subject string
		args    []string
		code    int
		want    string
	}{
		"with a token":            {nil, withToken, autumn, inBonn, exitOK, "deployment intent group retail/shop/v2/autumn: Instantiated\nReady"},
		"a group":                 {nil, withToken, autumn, []string{"-o", "json"}, exitUnknown, `"state":"Unknown"`},
		"with a ServiceAccount":   {nil, withoutToken, autumn, inBonn, exitOK, "deployment intent group retail/shop/v2/autumn: Instantiated\nReady"},
		"with another account":    {func(c *controllerCluster) { c.accounts = map[string]string{"mine": "friend"} }, withoutToken, autumn, append(inBonn, "--service-account", "mine"), exitOK, "Ready"},
		"without an account":      {func(c *controllerCluster) { c.accounts = nil }, withoutToken, bonn, nil, exitUnknown, `with --service-account, name a ServiceAccount of namespace "healthscope-system" that may read the status REST API`},
		"without a right":         {func(c *controllerCluster) { c.accounts[defaultServiceAccount] = "stranger" }, withoutToken, bonn, nil, exitUnknown, "Forbidden (403): user \"stranger\" may not get the URL"},
		"with an unknown token":   {nil, `{"token":"unknown"}`, bonn, nil, exitUnknown, "Unauthorized (401)"},
		"may not request a token": {func(c *controllerCluster) { c.forbidden = "token" }, withoutToken, bonn, nil, exitUnknown, `cannot get one of ServiceAccount "healthscope-system/healthscope-status-reader": forbidden: token`},
		"may not forward":         {func(c *controllerCluster) { c.forbidden = "portforward" }, withToken, bonn, nil, exitUnknown, `cannot ask pod "healthscope-system/hub-1": the API server answers 403 Forbidden: forbidden: portforward`},
		"no pod is ready":         {func(c *controllerCluster) { c.ready = false }, withToken, bonn, nil, exitUnknown, `no pod of the controller is ready in namespace "healthscope-system"; --controller-namespace looks in another`},
		"in another namespace":    {nil, withToken, bonn, []string{"--controller-namespace", "other"}, exitUnknown, `cannot find the controller in namespace "other"`},
		"unknown group":           {nil, withToken, "retail/shop/v2/winter", nil, exitUnknown, "Not Found (404)"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newStatusHub(t)
			h.tokens = []string{"friend", "stranger"}
			cluster := newControllerCluster(t, h)
			if c.change != nil {
				c.change(cluster)
			}
			var out, errOut bytes.Buffer
			code := Main(append([]string{"status", c.subject, "--kubeconfig", cluster.kubeconfig(t, c.user)}, c.args...), nil, &out, &errOut)
			got := fmt.Sprint(out.String(), errOut.String())
			if code != c.code || !strings.Contains(got, c.want) || strings.Contains(got, "friend") {
				t.Errorf("want exit code %d and %q, got %d and %s", c.code, c.want, code, got)
			}
		})
	}
}

// TestStatusSendsNoTokenToAnUnverifiedServer: a token is sent only to a verified API server. An unverified server could be an
// impostor.
func TestStatusSendsNoTokenToAnUnverifiedServer(t *testing.T) {
	h := newStatusHub(t)
	h.tokens = []string{"friend"}
	cluster := newControllerCluster(t, h)
	config := writeFile(t, "kubeconfig", strings.NewReplacer("SERVER", cluster.URL).Replace(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":"SERVER","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"friend"}}]}`))
	code, _, errOut := run(t, "status", bonn, "--kubeconfig", config)
	if code != exitUnknown || !strings.Contains(errOut, "a token is not sent: the kubeconfig does not have the API server verified") || len(h.asked()) != 0 {
		t.Errorf("exit code %d, %q was asked: %s", code, h.asked(), errOut)
	}
}
