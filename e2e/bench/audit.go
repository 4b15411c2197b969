package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// auditPolicy makes the API server record the requests of HealthScope's ServiceAccounts, and nothing else. That is not for
// nothing: also at level Metadata the API server (1.36) encodes the object of each PUT once more, about 3 % of its CPU time
// in a burst of large bundles. Our figures have that in them, the floor's do not, because nothing is recorded of the load generator.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:healthscope-system"]
- level: None
`

// request is a kind of requests to the API server.
type request struct {
	// Client is the ServiceAccount: healthscope-monitor or healthscope-controller.
	Client string `json:"client"`
	// Verb is the verb, such as update or watch.
	Verb string `json:"verb"`
	// Resource is the resource with its subresource, such as healthscopes/status, or the path of a request for none.
	Resource string `json:"resource"`
	// Failed is true for requests that were answered with an error, such as a conflict.
	Failed bool `json:"failed,omitempty"`
}

// requests counts requests.
type requests map[request]int

// writes is the number of requests that succeeded in changing a resource.
func (r requests) writes(resource string) int {
	n := 0
	for kind, count := range r {
		if kind.Resource == resource && kind.changes() && !kind.Failed {
			n += count
		}
	}
	return n
}

// changes says whether requests of this kind change something.
func (k request) changes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, k.Verb)
}

// needed says whether requests of this kind are needed also when nothing happens: the renewal of Leases and of watches.
func (k request) needed() bool {
	return k.Verb == "watch" || strings.HasPrefix(k.Resource, "leases") && (k.Verb == "get" || k.Verb == "update")
}

// sorted returns the kinds, the most frequent first.
func (r requests) sorted() []request {
	return slices.SortedFunc(maps.Keys(r), func(a, b request) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}

// auditLog reads the API server's audit log as it grows.
type auditLog struct {
	path   string
	offset int64
}

// event is what is read of an audit event.
type event struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// next counts the requests since the last call.
func (a *auditLog) next() (_ requests, err error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("cannot read audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read audit log: %w", err)
	}
	counts := requests{}
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return counts, nil // A line that is not complete yet is read the next time.
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read audit log: %w", err)
		}
		a.offset += int64(len(line))
		if err := counts.add(line); err != nil {
			return nil, err
		}
	}
}

// add counts one event: a watch when it begins, everything else when it is answered.
func (r requests) add(line []byte) error {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("cannot read audit log: %w", err)
	}
	stage := "ResponseComplete"
	if e.Verb == "watch" {
		stage = "ResponseStarted"
	}
	if e.Stage != stage {
		return nil
	}
	kind := request{Verb: e.Verb, Failed: e.ResponseStatus.Code >= 400}
	kind.Client = e.User.Username[strings.LastIndexByte(e.User.Username, ':')+1:]
	if e.ObjectRef == nil {
		kind.Resource, _, _ = strings.Cut(e.RequestURI, "?")
	} else {
		kind.Resource = e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			kind.Resource += "/" + e.ObjectRef.Subresource
		}
	}
	r[kind]++
	return nil
}
