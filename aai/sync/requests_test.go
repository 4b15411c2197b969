package sync_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/aai/simulator"
)

// requests returns the requests that this project sends to A&AI while do runs, such as "UPDATE a", or "GET" for a list. It omits
// the probe that a Syncer sends first, which has its own tests.
func (w *world) requests(do func()) []string {
	before := len(w.Requests())
	do()
	list := []string{}
	for _, r := range w.Requests()[before:] {
		if !isProbe(r) {
			list = append(list, describe(r)...)
		}
	}
	return list
}

// isProbe reports whether a request only checks whether A&AI accepts our requests.
func isProbe(r simulator.Request) bool { return strings.Contains(r.Path, "healthscope-probe") }

// probes returns the number of probes that are sent while do runs.
func (w *world) probes(do func()) (n int) {
	before := len(w.Requests())
	do()
	for _, r := range w.Requests()[before:] {
		if isProbe(r) {
			n++
		}
	}
	return n
}

// describe returns a description of a request. The operations of a bulk request follow it, each after a plus sign.
func describe(r simulator.Request) []string {
	switch {
	case strings.HasSuffix(r.Path, tenant.Path()):
		return []string{"GET tenant"}
	case strings.HasSuffix(r.Path, "/vf-modules"):
		return []string{"GET modules"}
	case strings.Contains(r.Path, "/vf-module/"):
		return []string{r.Method + " module " + path.Base(r.Path)}
	}
	ops, err := operationsOf(r)
	switch {
	case err != nil:
		return []string{"a request that cannot be read: " + err.Error()}
	case !isBulk(r):
		return []string{ops[0].String()}
	}
	list := []string{"BULK " + strconv.Itoa(len(ops))}
	for _, op := range ops {
		list = append(list, "+ "+op.String())
	}
	return list
}

// requestOperation is what a request does to one object, alone or as an operation of a bulk request.
type requestOperation struct {
	Action, URI string
	Body        map[string]any
}

// operationsOf returns the operations of a request.
func operationsOf(r simulator.Request) ([]requestOperation, error) {
	if isBulk(r) {
		var all struct{ Operations []requestOperation }
		err := json.Unmarshal([]byte(r.Body), &all)
		return all.Operations, err
	}
	op := requestOperation{Action: strings.ToLower(r.Method), URI: strings.TrimPrefix(r.Path, "/aai/v32") + "?" + r.Query}
	err := json.Unmarshal([]byte(cmp.Or(r.Body, "{}")), &op.Body)
	return []requestOperation{op}, err
}

func isBulk(r simulator.Request) bool { return strings.HasSuffix(r.Path, "/bulk/single-transaction") }

// String returns the operation as "UPDATE a".
func (op requestOperation) String() string {
	method := strings.ToUpper(op.Action)
	if method == http.MethodPut && op.Body["resource-version"] != nil {
		method = "UPDATE"
	}
	edge := ""
	if strings.Contains(op.URI, "/relationship-list/") {
		edge = " edge"
	}
	return strings.TrimSpace(method + " " + op.object() + edge)
}

// object returns the id of the k8s-resource, or an empty string if it is another object.
func (op requestOperation) object() string {
	_, id, _ := strings.Cut(op.URI, "/k8s-resource/")
	id, _, _ = strings.Cut(id, "?")
	id, _, _ = strings.Cut(id, "/")
	return id
}

// sent returns the requests in a result of requests, without the operations of bulk requests.
func sent(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(r string) bool { return strings.HasPrefix(r, "+") })
}

// writes returns the sorted writes in a result of requests, whether they were sent alone or in bulk.
func writes(list []string) (found []string) {
	for _, r := range list {
		if !strings.HasPrefix(r, "GET") && !strings.HasPrefix(r, "BULK") {
			found = append(found, strings.TrimPrefix(r, "+ "))
		}
	}
	slices.Sort(found)
	return found
}
