package status

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// matching maps the expected resources of an app in a cluster to the members of a report. It is immutable, and nil where
// nothing is known.
type matching struct {
	members []healthscope.Member
	// memberIndexes are the indexes of the members by the indexes of the resources; -1 for a resource that is not there. followed says
	// of each resource whether it would be among the members if it were there.
	memberIndexes []int
	followed      []bool
	// unexpected are the indexes of the members that are not expected, sorted by group, kind, namespace and name.
	unexpected []int
}

// matchingOf returns how a place matches members. It is made again only for other members than those of the last call:
// many documents are made of the same.
func (p *appInCluster) matchingOf(members []healthscope.Member) *matching {
	if last := p.matched.Load(); last != nil && last.isOf(members) {
		return last
	}
	made := matchMembers(p.resources, members)
	p.matched.Store(made)
	return made
}

// isOf reports whether these are the members that were matched. They are never changed, so that the same place in memory says so.
func (m *matching) isOf(members []healthscope.Member) bool {
	return len(members) == len(m.members) && (len(members) == 0 || &members[0] == &m.members[0])
}

// matcher is the working state of matchMembers.
type matcher struct {
	*matching

	// byName are the indexes of members by kind and name; next leads from one to the next of the same kind and name, until -1.
	byName  map[objectName]int
	next    []int
	claimed []bool
	kinds   map[groupKind]bool
}

type objectName struct{ kind, name string }

// matchMembers finds the members that resources are. Each member is one resource at most.
func matchMembers(resources []resource, members []healthscope.Member) *matching {
	m := matcher{
		matching: &matching{members: members, memberIndexes: make([]int, len(resources)), followed: make([]bool, len(resources))},
		byName:   make(map[objectName]int, len(members)), next: make([]int, len(members)), claimed: make([]bool, len(members)),
		kinds: map[groupKind]bool{},
	}
	for i := range members {
		key := objectName{members[i].Kind, members[i].Name}
		before, ok := m.byName[key]
		if !ok {
			before = -1
		}
		m.byName[key], m.next[i] = i, before
		m.kinds[groupKind{members[i].Group, members[i].Kind}] = true
	}
	for i := range resources {
		r := &resources[i]
		k := groupKind{r.group, r.kind}
		m.memberIndexes[i], m.followed[i] = m.match(r), r.version != "" && (followed[k] || m.kinds[k])
	}
	for i := range members {
		if !m.claimed[i] {
			m.unexpected = append(m.unexpected, i)
		}
	}
	slices.SortStableFunc(m.unexpected, func(a, b int) int { return members[a].Compare(members[b].Key) })
	return m.matching
}

// match returns the index of the member that a resource is, and does not return it again; -1 when there is none. Of several
// in different namespaces it is the one in the namespace that the context names, else the first.
func (m *matcher) match(r *resource) int {
	best := -1
	i, ok := m.byName[objectName{r.kind, r.name}]
	for ; ok && i >= 0; i = m.next[i] {
		if m.claimed[i] || !r.matches(m.members[i].Key) {
			continue
		}
		if best < 0 || m.preferred(i, best, r.defaultNamespace) {
			best = i
		}
	}
	if best >= 0 {
		m.claimed[best] = true
	}
	return best
}

func (m *matcher) preferred(i, than int, namespace string) bool {
	a, b := m.members[i].Key, m.members[than].Key
	if here, there := a.Namespace == namespace, b.Namespace == namespace; here != there {
		return here
	}
	return a.Compare(b) < 0
}

// member returns the member that the resource of an index is; nil when there is none.
func (m *matching) member(resource int) *healthscope.Member {
	if m == nil || m.memberIndexes[resource] < 0 {
		return nil
	}
	return &m.members[m.memberIndexes[resource]]
}

// follows reports whether the resource of an index would be among the members if it were there.
func (m *matching) follows(resource int) bool { return m != nil && m.followed[resource] }
