package client

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/healthscope/healthscope/aai"
)

var kinds = []aai.ErrorKind{aai.Retry, aai.Conflict, aai.MissingDependency, aai.Misconfigured, aai.Rejected}

func FuzzParseError(f *testing.F) {
	f.Add(404, []byte(`{"requestError":{"serviceException":{"messageId":"SVC3001","text":"Resource not found for %1 using id %2 (msg=%3) (ec=%4)","variables":["PUT","x","Node Not Found","ERR.5.4.6114"]}}}`))
	f.Add(403, []byte(`{"requestError":{"policyException":{"messageId":"POL3300","text":"Unauthorized (msg=%1) (ec=%2)","variables":["Unauthorized","ERR.5.1.3300"]}}}`))
	f.Add(400, []byte(`{"requestError":{"serviceException":{"messageId":"SVC3000","variables":["null","null","Invalid X-FromAppId in header","4.0.4009"]}}}`))
	f.Add(500, []byte(`{"requestError":{"serviceException":{"variables":[17,{"a":1},null,"ERR.5.4.4000"]}}}`))
	f.Add(502, []byte("<html>\n<h1>Bad Gateway</h1>"))
	f.Add(200, []byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := parseError(body)
		e.Status = status
		for _, text := range []string{e.Message, e.MessageID} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00") || utf8.RuneCountInString(text) > maxMessage+1 {
				t.Errorf("%q is not fit for a log", text)
			}
		}
		if e.Code != "" && !errorCode.MatchString(e.Code) {
			t.Errorf("code %q", e.Code)
		}
		for _, op := range []aai.Op{aai.OpPut, aai.OpUpdate} {
			e.Op = op
			if kind := classify(e); !slices.Contains(kinds, kind) {
				t.Errorf("kind %q", kind)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for _, seed := range []string{"", "0", "120", "-1", "1e9", "4294967296", now.Add(time.Minute).Format(http.TimeFormat), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if d := retryAfter(value, now); d < 0 || d > maxRetryAfter {
			t.Errorf("%q means %s", value, d)
		}
	})
}
