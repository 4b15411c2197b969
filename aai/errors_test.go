package aai_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/healthscope/healthscope/aai"
)

func TestErrorText(t *testing.T) {
	cases := map[string]struct {
		err  *aai.Error
		want string
	}{
		"an answer of A&AI": {
			err: &aai.Error{
				Op: aai.OpPut, URI: "/x", Status: 412, Code: "ERR.5.4.6130", MessageID: "SVC3000", Message: "Precondition Required", TransactionID: "id-1",
			},
			want: `cannot put "/x": status 412 SVC3000 ERR.5.4.6130: Precondition Required (transaction id-1)`,
		},
		"a proxy's answer": {
			err:  &aai.Error{Op: aai.OpList, URI: "/x", Status: 502, Message: "Bad Gateway"},
			want: `cannot list "/x": status 502: Bad Gateway`,
		},
		"an operation whose name is no verb": {
			err:  &aai.Error{Op: aai.OpModules, URI: "/x", Message: "no answer"},
			want: `cannot list "/x": no answer`,
		},
		"no answer": {
			err:  &aai.Error{Op: aai.OpDelete, URI: "/x", Message: "no answer", Err: context.DeadlineExceeded},
			want: `cannot delete "/x": no answer: context deadline exceeded`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestErrorIsFoundInATree(t *testing.T) {
	cause := &aai.Error{Op: aai.OpGet, URI: "/x", Kind: aai.Misconfigured, Err: context.Canceled}
	err := fmt.Errorf("cannot do it: %w", errors.Join(errors.New("another"), cause))
	if got := aai.KindOf(err); got != aai.Misconfigured {
		t.Errorf("kind is %q, want Misconfigured", got)
	}
	if !errors.Is(err, context.Canceled) {
		t.Error("the cause is not found")
	}
	if got := aai.KindOf(errors.New("another")); got != aai.Retry {
		t.Errorf("kind of a foreign error is %q, want Retry", got)
	}
	if aai.NotSent(err) {
		t.Error("the request was sent")
	}
	cause.NotSent = true
	if !aai.NotSent(err) || aai.NotSent(errors.New("another")) {
		t.Error("whether the request was sent is not found")
	}
}

func TestOutage(t *testing.T) {
	cases := map[string]struct {
		err  aai.Error
		want bool
	}{
		"no answer":                    {aai.Error{Kind: aai.Retry}, true},
		"no backend":                   {aai.Error{Kind: aai.Retry, Status: 503}, true},
		"an internal error":            {aai.Error{Kind: aai.Retry, Status: 500}, false},
		"an internal error, and pause": {aai.Error{Kind: aai.Retry, Status: 500, RetryAfter: 1}, true},
		"a success of another server":  {aai.Error{Kind: aai.Retry, Status: 202}, true},
		"one request, and pause":       {aai.Error{Kind: aai.Rejected, Status: 503, RetryAfter: 1}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.err.Outage(); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
