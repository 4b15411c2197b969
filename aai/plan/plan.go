package plan

import (
	"slices"
	"strings"

	"github.com/healthscope/healthscope/aai"
)

// Policy says which operations are allowed on our documents.
type Policy string

// The policies.
const (
	// Sync creates, changes and deletes. It is the default.
	Sync Policy = "sync"
	// UpsertOnly creates and changes, and never deletes.
	UpsertOnly Policy = "upsert-only"
)

// Options define what is ours and which operations are allowed.
type Options struct {
	// Owner is our data-owner.
	Owner string
	// LabelPrefix is the prefix of the reserved labels. All labels that start with it are ours.
	LabelPrefix string
	// LabelKeys are the keys of labels that are copied from resources. Labels with these keys are ours too.
	LabelKeys []string
	// Policy says which operations are allowed. Empty means Sync.
	Policy Policy
	// Limit bounds how many documents are deleted at a time.
	Limit Limit
}

// Verb is the kind of an operation.
type Verb string

// The verbs, in the order in which operations on one document must be done.
const (
	// Create stores a new document with its relationships.
	Create Verb = "Create"
	// Update changes fields and labels of a document.
	Update Verb = "Update"
	// Unrelate removes a relationship.
	Unrelate Verb = "Unrelate"
	// Relate adds a relationship.
	Relate Verb = "Relate"
	// Delete deletes a document.
	Delete Verb = "Delete"
)

// Operation is one write to A&AI.
type Operation struct {
	// Verb is the kind of the operation.
	Verb Verb
	// Key is the key of the document.
	Key aai.Key
	// Document is the document to store; for Create and Update. For Update it has no relationship list, so that A&AI keeps the relationships.
	Document aai.Document
	// Relationship is the relationship; for Relate and Unrelate.
	Relationship aai.Relationship
	// ResourceVersion is the known version, from which the operation was computed; for Update and Delete. If it is empty, the caller must read the document first.
	ResourceVersion string
}

// Needs returns the relationships whose targets must exist before the operation can be done.
func (o Operation) Needs() []aai.Relationship {
	switch o.Verb {
	case Create:
		return o.Document.RelationshipList.Relationships
	case Relate:
		return []aai.Relationship{o.Relationship}
	case Update, Unrelate, Delete:
	}
	return nil
}

// Conflict is a desired document whose key is already used by a document of another owner. That document is not changed.
type Conflict struct {
	// Key is the key of the document.
	Key aai.Key
	// Owner is the data-owner of the existing document; empty when the document names none.
	Owner string
}

// Skipped is one of our documents that is not desired but is kept.
type Skipped struct {
	// Key is the key of the document.
	Key aai.Key
	// Source is the data-source of the document.
	Source string
	// Cause is the reason why the document is kept, in one word.
	Cause Cause
	// Message is the reason for a human reader.
	Message string
}

// Cause is the reason why a document that is not desired is kept.
type Cause string

// The causes.
const (
	// CausePolicy means that the policy is UpsertOnly.
	CausePolicy Cause = "policy"
	// CauseSource means that its data-source does not list all resources.
	CauseSource Cause = "source"
	// CauseLimit means that the limit on deletions of its data-source is reached, so the document has to wait.
	CauseLimit Cause = "limit"
)

// Plan holds the operations to do, and what cannot be done.
type Plan struct {
	// Operations are sorted by key. Operations on one key are in the order in which they must be done.
	Operations []Operation
	// Conflicts are sorted by key.
	Conflicts []Conflict
	// Skipped are sorted by key.
	Skipped []Skipped
}

// Decision holds the operations on one object, or the reason why nothing can be done. At most one of the fields is set; none is set when there is nothing to do.
type Decision struct {
	// Operations are in the order in which they must be done.
	Operations []Operation
	// Conflict is set when a document of another owner has the key.
	Conflict *Conflict
	// Skipped is set when the document is not desired but is kept.
	Skipped *Skipped
}

// Diff returns the plan that turns the current documents into the desired ones,
// if they are ours and no guard applies. It modifies neither map.
//
// Replacing a relationship takes two plans: the link label of the old relationship
// is kept until the relationship is removed, so that a failure in between cannot leave it behind.
func Diff(desired, current map[aai.Key]aai.Document, guards Guards, o Options) Plan {
	keys := make([]aai.Key, 0, max(len(desired), len(current)))
	owned := map[string]int{}
	for key := range desired {
		keys = append(keys, key)
	}
	for key, have := range current {
		if _, wanted := desired[key]; !wanted {
			keys = append(keys, key)
		}
		if have.DataOwner == o.Owner {
			owned[have.DataSource]++
		}
	}
	slices.SortFunc(keys, aai.Key.Compare)
	var p Plan
	limiters := map[string]*DeletionLimiter{}
	for _, key := range keys {
		d := o.Decide(key, lookup(desired, key), lookup(current, key), guards)
		if source := current[key].DataSource; d.Deletes() && guards.Limits(source) {
			if limiters[source] == nil {
				limiters[source] = NewDeletionLimiter(owned[source], o.Limit)
			}
			if !limiters[source].Allow(key) {
				d = Decision{Skipped: limiters[source].Skipped(key, source)}
			}
		}
		p.Operations = append(p.Operations, d.Operations...)
		if d.Conflict != nil {
			p.Conflicts = append(p.Conflicts, *d.Conflict)
		}
		if d.Skipped != nil {
			p.Skipped = append(p.Skipped, *d.Skipped)
		}
	}
	return p
}

// lookup returns the document of a key; nil when the map has none.
func lookup(m map[aai.Key]aai.Document, key aai.Key) *aai.Document {
	if d, ok := m[key]; ok {
		return &d
	}
	return nil
}

// Decide returns the decision that turns the current document of an object into the
// desired one; nil means no document. It modifies neither. It does not limit the number
// of deletions, which a DeletionLimiter does.
func (o Options) Decide(key aai.Key, want, have *aai.Document, guards Guards) Decision {
	switch {
	case guards.Keys[key], want == nil && (have == nil || have.DataOwner != o.Owner):
		return Decision{}
	case want == nil:
		if skipped := o.skipDeletion(key, *have, guards); skipped != nil {
			return Decision{Skipped: skipped}
		}
		return Decision{Operations: []Operation{{Verb: Delete, Key: key, ResourceVersion: have.ResourceVersion}}}
	case have == nil:
		return Decision{Operations: []Operation{{Verb: Create, Key: key, Document: newDocument(*want)}}}
	case have.DataOwner != o.Owner:
		return Decision{Conflict: &Conflict{Key: key, Owner: have.DataOwner}}
	default:
		return Decision{Operations: o.changes(key, o.carryOverSince(*want, *have), *have)}
	}
}

// Deletes reports whether the decision is to delete.
func (d Decision) Deletes() bool { return len(d.Operations) > 0 && d.Operations[0].Verb == Delete }

// skipDeletion returns why a document that is not desired must not be deleted; nil when it may be deleted.
func (o Options) skipDeletion(key aai.Key, have aai.Document, guards Guards) *Skipped {
	if o.Policy == UpsertOnly {
		return &Skipped{Key: key, Source: have.DataSource, Cause: CausePolicy, Message: "the policy is upsert-only"}
	}
	if why, held := guards.deletionHold(have); held {
		return &Skipped{Key: key, Source: have.DataSource, Cause: CauseSource, Message: why}
	}
	return nil
}

// carryOverSince adds the since label of the current document to the desired one if that has none and the status is the same.
// After a restart, the controller does not know for every resource when its state began, and the time in A&AI is the best one available.
func (o Options) carryOverSince(want, have aai.Document) aai.Document {
	if o.label(want, aai.LabelSince) != "" || o.label(want, aai.LabelStatus) != o.label(have, aai.LabelStatus) {
		return want
	}
	if since := o.label(have, aai.LabelSince); since != "" {
		want.Labels = append(slices.Clone(want.Labels), since)
	}
	return want
}

// label returns a reserved label of a document as key=value; empty when there is none.
func (o Options) label(d aai.Document, name string) string {
	prefix := o.LabelPrefix + name + "="
	for _, label := range d.Labels {
		if strings.HasPrefix(label, prefix) {
			return label
		}
	}
	return ""
}

// newDocument returns a document in the form that a create sends: sorted, without a version, and without an empty list of relationships.
func newDocument(d aai.Document) aai.Document {
	d.ResourceVersion = ""
	d.Labels = sortedSet(d.Labels)
	links := append([]aai.Relationship(nil), d.RelationshipList.Relationships...)
	slices.SortFunc(links, compareTargets)
	d.RelationshipList.Relationships = slices.CompactFunc(links, func(a, b aai.Relationship) bool { return compareTargets(a, b) == 0 })
	return d
}

// changes returns the operations that bring one of our documents up to date.
func (o Options) changes(key aai.Key, want, have aai.Document) []Operation {
	if equal(want, have) {
		return nil
	}
	var ops []Operation
	links := o.diffLinks(want, have)
	if update := o.updatedDocument(want, have, links); comparedFields(update) != comparedFields(have) || !slices.Equal(update.Labels, sortedSet(have.Labels)) {
		ops = append(ops, Operation{Verb: Update, Key: key, Document: update, ResourceVersion: have.ResourceVersion})
	}
	for _, r := range links.remove {
		ops = append(ops, Operation{Verb: Unrelate, Key: key, Relationship: r})
	}
	for _, r := range links.add {
		ops = append(ops, Operation{Verb: Relate, Key: key, Relationship: r})
	}
	return ops
}

// equal reports whether a document needs no operation. It is fast, because nearly all documents need none.
func equal(want, have aai.Document) bool {
	return comparedFields(want) == comparedFields(have) &&
		containsAll(want.Labels, have.Labels) && containsAll(have.Labels, want.Labels) &&
		hasRelationships(want, have) && hasRelationships(have, want)
}

// containsAll reports whether all labels are in the list.
func containsAll(list, labels []string) bool {
	for _, label := range labels {
		if !slices.Contains(list, label) {
			return false
		}
	}
	return true
}

// hasRelationships reports whether a document has all relationships of another document.
func hasRelationships(d, other aai.Document) bool {
	for _, r := range other.RelationshipList.Relationships {
		if !containsRelationship(d.RelationshipList.Relationships, r) {
			return false
		}
	}
	return true
}

// comparedFields returns the fields of a document that are compared.
func comparedFields(d aai.Document) [7]string {
	return [...]string{d.Name, d.Group, d.Version, d.Kind, d.Namespace, d.Selflink, d.DataSource}
}

// updatedDocument returns the document that an update sends: all fields, because A&AI removes fields that are left out, and no relationships.
func (o Options) updatedDocument(want, have aai.Document, links linkDiff) aai.Document {
	want.Labels = o.mergedLabels(want, have, links)
	want.DataSourceVersion, want.ResourceVersion, want.RelationshipList = have.DataSourceVersion, "", aai.RelationshipList{}
	return want
}

// mergedLabels returns the labels for an update: the desired ones, those of other owners, and the link labels of relationships that have not been removed yet.
func (o Options) mergedLabels(want, have aai.Document, links linkDiff) []string {
	labels := slices.Clone(want.Labels)
	for _, label := range have.Labels {
		if !o.ownsLabel(label) {
			labels = append(labels, label)
		}
	}
	for _, r := range links.remove {
		labels = append(labels, o.linkLabel(r))
	}
	return sortedSet(labels)
}

// ownsLabel reports whether a label on one of our documents is one that this project sets.
func (o Options) ownsLabel(label string) bool {
	key, _, _ := strings.Cut(label, "=")
	return o.LabelPrefix != "" && strings.HasPrefix(key, o.LabelPrefix) || slices.Contains(o.LabelKeys, key)
}

// linkLabel returns the label that marks a relationship as ours.
func (o Options) linkLabel(r aai.Relationship) string {
	return o.LabelPrefix + aai.LabelLink + "=" + r.Target()
}

// linkDiff holds the relationships to add to a document and to remove from it, sorted.
type linkDiff struct{ add, remove []aai.Relationship }

// diffLinks compares relationships by their targets. It removes an existing relationship that is not desired only if a link label says that it is ours.
func (o Options) diffLinks(want, have aai.Document) linkDiff {
	var c linkDiff
	for _, r := range want.RelationshipList.Relationships {
		if !containsRelationship(have.RelationshipList.Relationships, r) && !containsRelationship(c.add, r) {
			c.add = append(c.add, r)
		}
	}
	for _, r := range have.RelationshipList.Relationships {
		if !containsRelationship(want.RelationshipList.Relationships, r) && slices.Contains(have.Labels, o.linkLabel(r)) {
			c.remove = append(c.remove, r)
		}
	}
	slices.SortFunc(c.add, compareTargets)
	slices.SortFunc(c.remove, compareTargets)
	return c
}

func compareTargets(a, b aai.Relationship) int { return strings.Compare(a.Target(), b.Target()) }

func containsRelationship(list []aai.Relationship, r aai.Relationship) bool {
	target := r.Target()
	return slices.ContainsFunc(list, func(other aai.Relationship) bool { return other.Target() == target })
}

// sortedSet returns the list sorted and without duplicates, as a new slice that is never nil. A&AI stores labels as a set.
func sortedSet(labels []string) []string {
	sorted := append([]string{}, labels...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
