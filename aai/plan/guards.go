package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/aai"
)

// Guards are what must not be touched, because too little is known about it.
type Guards struct {
	// Keys are documents that are neither written nor deleted. They win over desired documents.
	Keys map[aai.Key]bool
	// Deletions say of parts of data-sources why their documents must not be deleted: the source is truncated, not synced or lost. Writes are not held.
	Deletions map[Partition]string
	// Existing are the data-sources that are known to exist. The documents of others go without a limit: these clusters were removed. Nil means that it is not known which exist.
	Existing []string
}

// Partition is a part of a data-source. A document is in the part of the namespace that it is in, and in that of the scope
// that it was written for, because a scope has resources of other namespaces only by way of bundles in its own. Of a
// document that names no scope it is not known which bundle it came from: it is in every part.
type Partition struct {
	// Source is the data-source; empty for every one.
	Source string
	// Namespace is the namespace; empty for every one.
	Namespace string
}

// Compare sorts parts by source and namespace.
func (p Partition) Compare(o Partition) int {
	return cmp.Or(strings.Compare(p.Source, o.Source), strings.Compare(p.Namespace, o.Namespace))
}

// deletionHold returns why a document must not be deleted, and false when it may be deleted.
func (g Guards) deletionHold(d aai.Document) (why string, held bool) {
	if len(g.Deletions) == 0 {
		return "", false
	}
	scopeNamespace, scoped := d.ScopeNamespace()
	if !scoped {
		return g.firstDeletionHold(d.DataSource)
	}
	for _, source := range []string{"", d.DataSource} {
		for _, namespace := range []string{"", d.Namespace, scopeNamespace} {
			if why, held := g.Deletions[Partition{source, namespace}]; held {
				return why, true
			}
		}
	}
	return "", false
}

// firstDeletionHold returns why deletions are held in the first guarded partition of a data-source, and false when it has none.
func (g Guards) firstDeletionHold(source string) (why string, held bool) {
	for _, part := range slices.SortedFunc(maps.Keys(g.Deletions), Partition.Compare) {
		if part.Source == "" || part.Source == source {
			return g.Deletions[part], true
		}
	}
	return "", false
}

// Limits reports whether deletions of a data-source are to be limited.
func (g Guards) Limits(source string) bool {
	return g.Existing == nil || slices.Contains(g.Existing, source)
}
