package rights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// userPrefix begins the user name of every ServiceAccount, followed by namespace:name.
const userPrefix = "system:serviceaccount:"

// AuditPolicy returns an audit policy (audit.k8s.io/v1, in YAML) by which the
// API server notes every request of the ServiceAccounts of a namespace, without its content, and nothing else.
func AuditPolicy(namespace string) string {
	return fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:%s"]
- level: None
`, namespace)
}

// Use is a request, or many of the same kind, as RBAC looks at it.
type Use struct {
	// Account is the ServiceAccount that asked, as namespace/name.
	Account string
	// Verb is RBAC's verb: a list that watches is a watch, and a DELETE that names nothing a deletecollection.
	Verb string
	// Group and Resource say what was asked for; a subresource follows its resource after a slash. Both are empty when URL is set.
	Group, Resource string
	// Namespace is where; empty for all namespaces at once and for what has none.
	Namespace string
	// Name is the object that the request names; empty when it names none, as when it creates one.
	Name string
	// URL is the path of a request that is for no resource, such as /apis.
	URL string
}

// Log is what an audit log says.
type Log struct {
	// Uses are the requests, each once.
	Uses []Use
	// Refused are those of them that RBAC has refused.
	Refused []Use
}

// event is what is read of an audit event (audit.k8s.io/v1).
type event struct {
	RequestURI  string            `json:"requestURI"`
	Verb        string            `json:"verb"`
	User        eventUser         `json:"user"`
	ObjectRef   *eventObject      `json:"objectRef"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

type eventUser struct {
	Username string `json:"username"`
}

type eventObject struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	APIGroup    string `json:"apiGroup"`
	Subresource string `json:"subresource"`
}

// ReadAudit reads the requests that the API server has received since a time
// from its audit log; the end of a watch, which is noted when it ends, is no
// new request. A line that is still being written is left out. It fails when a
// line is not an audit event of a ServiceAccount: the log was then not made
// with AuditPolicy.
func ReadAudit(path string, since time.Time) (Log, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Log{}, fmt.Errorf("cannot read audit log: %w", err)
	}
	log, err := read(data, since)
	if err != nil {
		return Log{}, fmt.Errorf("cannot read audit log %q: %w", path, err)
	}
	return log, nil
}

func read(data []byte, since time.Time) (Log, error) {
	var log Log
	uses, refused := map[Use]bool{}, map[Use]bool{}
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return log, nil
		}
		data = rest
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return Log{}, fmt.Errorf("line %d: %w", number, err)
		}
		u, err := e.use()
		if err != nil {
			return Log{}, fmt.Errorf("line %d: %w", number, err)
		}
		if e.Received.Before(since) {
			continue
		}
		if !uses[u] {
			log.Uses = append(log.Uses, u)
		}
		// https://kubernetes.io/docs/reference/labels-annotations-taints/audit-annotations/#authorization-k8s-io-decision
		forbidden := e.Annotations["authorization.k8s.io/decision"] == "forbid"
		if forbidden && !refused[u] {
			log.Refused = append(log.Refused, u)
		}
		uses[u], refused[u] = true, refused[u] || forbidden
	}
}

// use returns the request as RBAC has looked at it.
func (e event) use() (Use, error) {
	account, ok := strings.CutPrefix(e.User.Username, userPrefix)
	if !ok {
		return Use{}, fmt.Errorf("user.username: %q is no ServiceAccount", e.User.Username)
	}
	u := Use{Account: strings.Replace(account, ":", "/", 1), Verb: e.Verb}
	if e.ObjectRef == nil {
		u.URL, _, _ = strings.Cut(e.RequestURI, "?")
		return u, nil
	}
	o := e.ObjectRef
	u.Group, u.Resource, u.Namespace, u.Name = o.APIGroup, o.Resource, o.Namespace, o.Name
	switch {
	case o.Subresource != "":
		u.Resource += "/" + o.Subresource
	case u.Verb == "create":
		u.Name = "" // The audit log takes it from the object; RBAC decides before the object is read.
	}
	return u, nil
}
