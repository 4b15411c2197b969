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

type objectName struct{ kind, name string }

// matchMembers matches resources with members. A member matches at most one resource. Of several members in different namespaces,
// a resource gets the one in its default namespace, or else the first by key.
func matchMembers(resources []resource, members []healthscope.Member) *matching {
	m := &matching{members: members, memberIndexes: make([]int, len(resources)), followed: make([]bool, len(resources))}
	byName, kinds := make(map[objectName][]int, len(members)), map[groupKind]bool{}
	for i := range members {
		name := objectName{members[i].Kind, members[i].Name}
		byName[name] = append(byName[name], i)
		kinds[groupKind{members[i].Group, members[i].Kind}] = true
	}
	claimed := make([]bool, len(members))
	for i := range resources {
		r, best := &resources[i], -1
		for _, candidate := range byName[objectName{r.kind, r.name}] {
			if !claimed[candidate] && r.matches(members[candidate].Key) && (best < 0 || r.prefers(members[candidate].Key, members[best].Key)) {
				best = candidate
			}
		}
		if best >= 0 {
			claimed[best] = true
		}
		k := groupKind{r.group, r.kind}
		m.memberIndexes[i], m.followed[i] = best, r.version != "" && (followed[k] || kinds[k])
	}
	for i := range members {
		if !claimed[i] {
			m.unexpected = append(m.unexpected, i)
		}
	}
	slices.SortStableFunc(m.unexpected, func(a, b int) int { return members[a].Compare(members[b].Key) })
	return m
}

// prefers reports whether the resource is rather the object with key a than the one with key b.
func (r *resource) prefers(a, b healthscope.Key) bool {
	if here, there := a.Namespace == r.defaultNamespace, b.Namespace == r.defaultNamespace; here != there {
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
