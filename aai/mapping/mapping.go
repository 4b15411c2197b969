package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/healthscope"
)

// Resource is a judged resource with its scope and its VNF.
type Resource struct {
	// Member is the judgement.
	Member healthscope.Member
	// Scope is the HealthScope that the resource belongs to; empty when it belongs to none.
	Scope Scope
	// GenericVNFID is the VNF that the scope relates the resource to; empty for none.
	GenericVNFID string
	// VFModuleID is the module of that VNF; empty for none. It has no meaning without GenericVNFID.
	VFModuleID string
}

// Scope names a HealthScope.
type Scope struct {
	// Namespace is the scope's namespace.
	Namespace string
	// Name is the scope's name.
	Name string
}

// Decision says what happens to the document of a resource in A&AI.
type Decision string

// The decisions.
const (
	// Write means that A&AI should hold the document.
	Write Decision = "Write"
	// Hold means that nothing is known about the resource: its document in A&AI is neither changed nor deleted.
	Hold Decision = "Hold"
	// Remove means that the resource does not exist: A&AI should hold no document for it.
	Remove Decision = "Remove"
	// Exclude means that the kind is not written to A&AI. A document that an earlier configuration wrote should be deleted.
	Exclude Decision = "Exclude"
	// Unmapped means that no region is configured for the resource's cluster and namespace.
	Unmapped Decision = "Unmapped"
)

// Entry is the result of Map for a resource.
type Entry struct {
	// Decision says what happens to the document.
	Decision Decision
	// Key is its key in A&AI; set for Write, Hold and Remove.
	Key aai.Key
	// Document is the document that A&AI should hold; set for Write.
	Document aai.Document
	// LinkDenied is true when the scope names a VNF that its namespace may not link to. The document is written without the relationship.
	LinkDenied bool
}

// Map returns the decision, and the document if there is one, for a judged resource.
//
// The states Pending and Terminating are written as Pending, NotPresent is removed and
// Unknown is held. An owned resource is mapped like any other.
func Map(r Resource, o Options) Entry {
	m := r.Member
	if !o.includesKind(m.Group, m.Kind) {
		return Entry{Decision: Exclude}
	}
	key, ok := KeyFor(m.Key, o)
	if !ok {
		return Entry{Decision: Unmapped}
	}
	e := Entry{Key: key}
	status, decision := statusOf(m.State)
	e.Decision = decision
	if decision != Write {
		return e
	}
	links, denied := relationships(r, o)
	e.LinkDenied = denied
	e.Document = aai.Document{
		ID:               e.Key.ID,
		Name:             m.Name,
		Group:            m.Group,
		Version:          m.Version,
		Kind:             m.Kind,
		Namespace:        m.Namespace,
		Labels:           labels(m, status, links, o),
		Selflink:         selflink(r, o),
		DataOwner:        o.Owner(),
		DataSource:       m.Cluster,
		RelationshipList: aai.RelationshipList{Relationships: links},
	}
	return e
}

// statusOf returns the status label for a state, and the decision for a resource in that state.
func statusOf(s healthscope.State) (healthscope.State, Decision) {
	switch s {
	case healthscope.Ready, healthscope.Pending, healthscope.Failed:
		return s, Write
	case healthscope.Terminating:
		return healthscope.Pending, Write
	case healthscope.NotPresent:
		return "", Remove
	case healthscope.Unknown:
	}
	return "", Hold
}

// ID returns the id of a resource's document: the lower-case hex SHA-256 of the
// installation and of the fields of its key, each preceded by its length as 8
// bytes, big-endian. The API version is not included, so the id does not change
// when the resource is read in another version.
func ID(installation string, k healthscope.Key) string {
	h := sha256.New()
	for _, field := range []string{installation, k.Cluster, k.Group, k.Kind, k.Namespace, k.Name} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write([]byte(field))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// maxLabelValue is the maximum length of a label value, in bytes. The limit is needed because another monitor may report a value of any length.
const maxLabelValue = 128

// labelValue returns a text as a label value: on one line, and at most maxLabelValue bytes long.
func labelValue(text string) string {
	return healthscope.Shorten(healthscope.Clean(text), maxLabelValue)
}

// labels returns the reserved labels and the allowed ones of the resource, sorted.
func labels(m healthscope.Member, status healthscope.State, links []aai.Relationship, o Options) []string {
	list := []string{o.LabelPrefix + aai.LabelStatus + "=" + string(status)}
	if m.Reason != "" {
		list = append(list, o.LabelPrefix+aai.LabelReason+"="+labelValue(string(m.Reason)))
	}
	if !m.Since.IsZero() {
		list = append(list, o.LabelPrefix+aai.LabelSince+"="+m.Since.UTC().Format(time.RFC3339))
	}
	for _, link := range links {
		list = append(list, o.LabelPrefix+aai.LabelLink+"="+link.Target())
	}
	for key, value := range m.Labels {
		if slices.Contains(o.LabelKeys, key) && !o.reserved(key) {
			list = append(list, key+"="+labelValue(value))
		}
	}
	slices.Sort(list)
	return list
}

// reserved reports whether only the mapping may set a label key: a resource must not be able to claim a state with its own label.
func (o Options) reserved(key string) bool {
	name, ok := strings.CutPrefix(key, o.LabelPrefix)
	return ok && slices.Contains([]string{aai.LabelStatus, aai.LabelReason, aai.LabelSince, aai.LabelLink}, name)
}

// selflink returns the URL of more information on the status REST server: the resource's scope, or the scopes of its namespace.
func selflink(r Resource, o Options) string {
	if (r.Scope != Scope{}) {
		return aai.ScopeSelflink(o.SelflinkBase, r.Scope.Namespace, r.Scope.Name)
	}
	return aai.ScopesSelflink(o.SelflinkBase, r.Member.Namespace)
}

// relationships returns the relationships of a resource, and whether its namespace may not link to the VNF that the scope names.
func relationships(r Resource, o Options) (links []aai.Relationship, denied bool) {
	if r.GenericVNFID == "" {
		return nil, false
	}
	if !o.mayLink(r.Scope.Namespace, r.GenericVNFID) {
		return nil, true
	}
	links = []aai.Relationship{aai.RelationshipToGenericVNF(r.GenericVNFID)}
	if r.VFModuleID != "" {
		links = append(links, aai.RelationshipToVFModule(r.GenericVNFID, r.VFModuleID))
	}
	return links, false
}

// KeyFor returns the key of a resource in A&AI, and false when no region is configured for its cluster and namespace.
func KeyFor(k healthscope.Key, o Options) (aai.Key, bool) {
	tenant, ok := o.tenant(k.Cluster, k.Namespace)
	if !ok {
		return aai.Key{}, false
	}
	return aai.Key{Tenant: tenant, ID: ID(o.Installation, k)}, true
}
