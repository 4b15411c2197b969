package status

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// matching maps the expected resources of an app in a cluster to the members of a report. It is immutable. A nil matching has no members.
type matching struct {
	members []healthscope.Member
	// memberIndexes holds the index of the member of each resource; -1 for a resource without a member. followed is true for each
	// resource that would be among the members if it existed.
	memberIndexes []int
	followed      []bool
	// unexpected holds the indexes of the members that are not expected, sorted by group, kind, namespace and name.
	unexpected []int
}

// matchingOf returns the matching of the resources with members. It reuses the last matching if the members are the same, because
// many documents are built from the same members.
func (p *appInCluster) matchingOf(members []healthscope.Member) *matching {
	if last := p.matched.Load(); last != nil && last.isOf(members) {
		return last
	}
	made := matchMembers(p.resources, members)
	p.matched.Store(made)
	return made
}

// isOf reports whether the matching is for these members. Members are immutable, so it compares only the address and the length.
func (m *matching) isOf(members []healthscope.Member) bool {
	return len(members) == len(m.members) && (len(members) == 0 || &members[0] == &m.members[0])
}

// matcher is the working state of matchMembers.
type matcher struct {
	*matching

	// byName holds the index of a member for each kind and name. next holds, for each member, the index of the next one of the same kind and
	// name, or -1.
	byName  map[objectName]int
	next    []int
	claimed []bool
	kinds   map[groupKind]bool
}

type objectName struct{ kind, name string }

// matchMembers matches resources with members. A member matches at most one resource.
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

// match claims the member that matches a resource, and returns its index; -1 when no unclaimed member matches. Of several members
// in different namespaces, it claims the one in the resource's default namespace, or else the first by key.
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

// member returns the member of the resource with an index; nil when there is none.
func (m *matching) member(resource int) *healthscope.Member {
	if m == nil || m.memberIndexes[resource] < 0 {
		return nil
	}
	return &m.members[m.memberIndexes[resource]]
}

// follows reports whether the resource with an index would be among the members if it existed.
func (m *matching) follows(resource int) bool { return m != nil && m.followed[resource] }
