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

// AuditPolicy returns an audit policy (audit.k8s.io/v1, in YAML) for the API server. It logs every request of the
// ServiceAccounts of a namespace, without the content, and no other request.
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

// Use is a kind of request, with the attributes by which RBAC decides. Several requests with the same attributes are one Use.
type Use struct {
	// Account is the ServiceAccount that sent the request, as namespace/name.
	Account string
	// Verb is the verb of RBAC: watch for a list that watches, and deletecollection for a DELETE without a name.
	Verb string
	// Group and Resource are the API group and the requested resource. A subresource follows its resource after a slash. Both
	// are empty if URL is set.
	Group, Resource string
	// Namespace is the namespace of the request; empty for all namespaces, and for objects without a namespace.
	Namespace string
	// Name is the object that the request names; empty if it names none, for example when it creates an object.
	Name string
	// URL is the path of a non-resource request, such as /apis.
	URL string
}

// Log holds the requests in an audit log.
type Log struct {
	// Uses are the requests, without duplicates.
	Uses []Use
	// Refused are those of Uses that RBAC has refused.
	Refused []Use
}

// event holds the fields of an audit event (audit.k8s.io/v1) that this package reads.
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

// ReadAudit reads the requests that the API server has received since a time from its audit log. The time of a watch is its
// start: the event that the API server logs at its end is no new request. An incomplete last line is ignored. ReadAudit returns
// an error if a line is not an audit event of a ServiceAccount: AuditPolicy was then not in effect.
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

// use returns the request with the attributes by which RBAC has decided.
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
		u.Name = "" // The audit log takes the name from the object, but RBAC decides before the object is read.
	}
	return u, nil
}
