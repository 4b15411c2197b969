package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/aai"
)

// Guards list the documents that must not be written or deleted, because too little is known about them.
type Guards struct {
	// Keys are the keys of documents that are neither written nor deleted. They take precedence over desired documents.
	Keys map[aai.Key]bool
	// Deletions hold the reasons why the documents of a partition must not be deleted: the source is truncated, not synced or unreachable. They do not affect writes.
	Deletions map[Partition]string
	// Existing are the data-sources that are known to exist. Documents of other data-sources are deleted without a limit, because their clusters were removed. Nil means that the existing data-sources are not known.
	Existing []string
}

// Partition is a part of a data-source. A document belongs to the partition of its own namespace and to the partition of the
// namespace of its scope, because a scope has resources of other namespaces only through bundles in its own namespace. A
// document that names no scope belongs to every partition, because the bundle that it came from is not known.
type Partition struct {
	// Source is the data-source; empty for all data-sources.
	Source string
	// Namespace is the namespace; empty for all namespaces.
	Namespace string
}

// Compare sorts partitions by source and namespace.
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

// Limits reports whether the limit applies to deletions of a data-source.
func (g Guards) Limits(source string) bool {
	return g.Existing == nil || slices.Contains(g.Existing, source)
}
