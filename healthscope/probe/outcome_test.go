package probe_test

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/healthscope/healthscope/healthscope/probe"
)

// ofAPIServer returns a response body of an API server, in protobuf.
func ofAPIServer(t *testing.T, code int32, message string) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	var out bytes.Buffer
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: message, Code: code}
	if err := protobuf.NewSerializer(scheme, scheme).Encode(status, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatAnswersSay(t *testing.T) {
	const own = "application/vnd.kubernetes.protobuf"
	reach := func(cause string) []byte {
		return ofAPIServer(t, 503, "error trying to reach service: dial tcp 10.0.0.7:80: "+cause)
	}
	for name, c := range map[string]struct {
		code  int
		media string
		body  []byte
		want  probe.Outcome
	}{
		"well":                       {200, "text/plain", nil, probe.Outcome{Kind: probe.Success}},
		"a redirect":                 {302, "", nil, probe.Outcome{Kind: probe.Success}},
		"the last code that is well": {399, "", nil, probe.Outcome{Kind: probe.Success}},
		"not well":                   {503, "application/json", []byte(`{"password":"x"}`), probe.Outcome{Kind: probe.Failure, Cause: "status code 503"}},
		"the target refuses":         {403, "text/html", nil, probe.Outcome{Kind: probe.Failure, Cause: "status code 403"}},
		"the target writes as if it was the API server": {403, "application/json", []byte(`{"kind":"Status","apiVersion":"v1","code":403}`), probe.Outcome{Kind: probe.Failure, Cause: "status code 403"}},
		"nothing listens":                  {503, own, reach("connect: connection refused"), probe.Outcome{Kind: probe.Failure, Cause: "connection refused"}},
		"no host":                          {503, own, reach("connect: no route to host"), probe.Outcome{Kind: probe.Failure, Cause: "no route to host"}},
		"the connection takes too long":    {503, own, reach("i/o timeout"), probe.Outcome{Kind: probe.Failure, Cause: "timeout"}},
		"no TLS":                           {503, own, reach("http: server gave HTTP response to HTTPS client"), probe.Outcome{Kind: probe.Failure, Cause: "no TLS"}},
		"the target sends text of its own": {503, own, reach(`malformed HTTP response "secret"`), probe.Outcome{Kind: probe.Failure, Cause: "malformed answer"}},
		"an error that is not known":       {503, own, reach("secret"), probe.Outcome{Kind: probe.Failure, Cause: "no connection"}},
		"a redirect to nowhere":            {500, own, ofAPIServer(t, 500, `Internal error occurred: error trying to parse Location header: "%zz"`), probe.Outcome{Kind: probe.Failure, Cause: "malformed redirect"}},
		"no endpoint":                      {503, own, ofAPIServer(t, 503, `no endpoints available for service "x"`), probe.Outcome{Kind: probe.NotProxied, Cause: "it has no ready endpoint that is a pod of its namespace"}},
		"no right":                         {403, own, ofAPIServer(t, 403, "forbidden"), probe.Outcome{Kind: probe.NotProxied, Cause: "the controller may not get services/proxy"}},
		"no Service":                       {404, own, ofAPIServer(t, 404, "not found"), probe.Outcome{Kind: probe.NotProxied, Cause: "the API server does not find the Service"}},
		"no text, as with HEAD":            {503, own, nil, probe.Outcome{Kind: probe.NotProxied, Cause: "it has no ready endpoint, or none that can be reached"}},
		"an API server in trouble":         {500, own, []byte("k8s\x00nonsense"), probe.Outcome{Kind: probe.NotProxied, Cause: "the API server answers with status code 500"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := probe.Judge(c.code, c.media, c.body); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// FuzzAnswer asserts that the cause of an outcome does not contain the response body.
func FuzzAnswer(f *testing.F) {
	f.Add(503, "application/vnd.kubernetes.protobuf", []byte("k8s\x00\x0a\x04\x0a\x02v1"))
	f.Add(500, "text/plain", []byte("secret"))
	f.Fuzz(func(t *testing.T, code int, media string, body []byte) {
		got := probe.Judge(code, media, body)
		if len(body) > 12 && bytes.Contains([]byte(got.Cause), body) {
			t.Errorf("the cause %q holds the body", got.Cause)
		}
		if (got.Kind == probe.Success) != (code >= 200 && code < 400) {
			t.Errorf("status code %d: %+v", code, got)
		}
	})
}
