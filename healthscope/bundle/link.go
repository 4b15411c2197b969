package bundle

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/healthscope/healthscope/healthscope"
)

// link gives every pod, ReplicaSet and Job its owner within the bundle. It keeps an
// ownerReference to an object of the bundle, and its absence from an object with a uid.
//
// Other monitors leave gaps: EMCO's API server prunes uid and ownerReferences, and its
// monitor does not report ReplicaSets. The owner then is the object of the bundle with
// the most specific selector that matches, or else the one from whose name Kubernetes
// would have generated the name of the owned object.
func link(items []item) {
	l := linker{items: items, index: map[healthscope.Key]int{}}
	for i := range items {
		l.index[items[i].result.Key] = i
	}
	for i := range items {
		if owner := l.ownerOf(i); owner != nil {
			items[i].result.Owner = owner
		}
	}
}

// maxMatches bounds how often selectors are compared with labels for one bundle.
// Bundles hold one application, of hundreds of objects. A bundle that exceeds this
// bound was made to cost time; its remaining owners are found by name.
const maxMatches = 1_000_000

// linker finds owners among the items of a bundle.
type linker struct {
	items []item
	index map[healthscope.Key]int
	// selectors are the items with a selector, by namespace; nil until they are needed.
	selectors map[string][]selectorItem
	// matches counts how often a selector was compared with labels.
	matches int
}

// selectorItem is an item with a selector that selects something.
type selectorItem struct {
	item     int
	selector labels.Selector
	// terms is the number of requirements of the selector: the more, the more specific.
	terms int
}

// ownerKinds are, for each kind that can be owned, the kinds that can own it, in the order in which they are preferred.
var ownerKinds = map[string][]string{
	"Pod":        {"ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Deployment"},
	"ReplicaSet": {"Deployment"},
	"Job":        {"CronJob"},
}

// groupsOf are the API groups that the kinds of owners and owned are in, or were.
var groupsOf = map[string][]string{
	"Pod":        {""},
	"ReplicaSet": {"apps", "extensions"}, "StatefulSet": {"apps"}, "DaemonSet": {"apps", "extensions"},
	"Deployment": {"apps", "extensions"}, "Job": {"batch"}, "CronJob": {"batch"},
}

// ownerOf returns the owner that item i lacks; nil when it has the right one, or when there is none.
func (l *linker) ownerOf(i int) *healthscope.Owner {
	result := l.items[i].result
	kinds, ok := ownerKinds[result.Kind]
	if !ok || !slices.Contains(groupsOf[result.Kind], result.Group) {
		return nil
	}
	name := result.Name
	switch owner := result.Owner; {
	case owner == nil:
		if result.UID != "" {
			return nil
		}
	case l.exists(result, owner.Group, owner.Kind, owner.Name) || result.Kind != "Pod" || owner.Kind != "ReplicaSet":
		return nil
	default:
		kinds, name = []string{"Deployment"}, owner.Name
	}
	if found := l.bySelector(i, kinds, name); found != nil {
		return found
	}
	return l.byName(result, kinds, name)
}

// exists reports whether the bundle has an object of the given name in the namespace of a result.
func (l *linker) exists(of healthscope.Result, group, kind, name string) bool {
	_, ok := l.index[healthscope.Key{Cluster: of.Cluster, Group: group, Kind: kind, Namespace: of.Namespace, Name: name}]
	return ok
}

// bySelector returns the owner, of one of kinds, with the most specific selector that matches item i.
func (l *linker) bySelector(i int, kinds []string, name string) *healthscope.Owner {
	if l.selectors == nil {
		l.selectors = selectorItems(l.items)
	}
	candidates := l.selectors[l.items[i].result.Namespace]
	l.matches += len(candidates)
	if l.matches > maxMatches {
		return nil
	}
	itemLabels := labels.Set(labelsOf(l.items[i].object))
	var best *selectorItem
	for _, candidate := range candidates {
		kind := l.items[candidate.item].result.Kind
		if !slices.Contains(kinds, kind) || !candidate.selector.Matches(itemLabels) {
			continue
		}
		if best == nil || l.preferred(candidate, *best, name) {
			best = &candidate
		}
	}
	if best == nil {
		return nil
	}
	owner := l.items[best.item].result.Key
	return &healthscope.Owner{Group: owner.Group, Kind: owner.Kind, Name: owner.Name}
}

// preferred reports whether a is a better owner than b for an object of the given
// name: by its selector, then by its name. Items are sorted, so that of equal
// ones the first is taken.
func (l *linker) preferred(a, b selectorItem, name string) bool {
	nameMatch := func(s selectorItem) int {
		owner := l.items[s.item].result.Name
		if strings.HasPrefix(name, owner+"-") {
			return len(owner)
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.terms, b.terms), cmp.Compare(nameMatch(a), nameMatch(b))) > 0
}

// selectorItems returns the items with a selector by namespace.
func selectorItems(items []item) map[string][]selectorItem {
	found := map[string][]selectorItem{}
	for i := range items {
		result := items[i].result
		if !slices.Contains(groupsOf[result.Kind], result.Group) {
			continue
		}
		raw := child(child(items[i].object, "spec"), "selector")
		selector, terms := parseSelector(raw)
		if terms > 0 {
			found[result.Namespace] = append(found[result.Namespace], selectorItem{item: i, selector: selector, terms: terms})
		}
	}
	return found
}

// parseSelector reads a label selector and counts its requirements: 0 when it selects nothing or everything, or cannot be read.
func parseSelector(raw map[string]any) (labels.Selector, int) {
	if len(raw) == 0 {
		return nil, 0
	}
	var parsed metav1.LabelSelector
	encoded, err := json.Marshal(raw)
	if err != nil || json.Unmarshal(encoded, &parsed) != nil {
		return nil, 0
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return nil, 0
	}
	return selector, len(parsed.MatchLabels) + len(parsed.MatchExpressions)
}

// byName returns the owner, of one of kinds, from whose name Kubernetes would have
// generated the given name. It prefers the owner with the longest name.
func (l *linker) byName(of healthscope.Result, kinds []string, name string) *healthscope.Owner {
	for end := strings.LastIndexByte(name, '-'); end > 0; end = strings.LastIndexByte(name[:end], '-') {
		suffix := name[end+1:]
		for _, kind := range kinds {
			if !isGeneratedName(kind, of.Kind, name != of.Name, suffix) {
				continue
			}
			for _, group := range groupsOf[kind] {
				if l.exists(of, group, kind, name[:end]) {
					return &healthscope.Owner{Group: group, Kind: kind, Name: name[:end]}
				}
			}
		}
	}
	return nil
}

// isGeneratedName reports whether an owner of a kind gives objects of another kind names
// that end, after its own name and a dash, in suffix. byReplicaSet is true when
// the name is that of the ReplicaSet of a pod.
//
// The forms are those of Kubernetes' controllers: <Deployment>-<hash>,
// <ReplicaSet>-<random>, <StatefulSet>-<ordinal>, <DaemonSet>-<random>,
// <Job>-<random>, <indexed Job>-<index>-<random>, <CronJob>-<minutes>.
func isGeneratedName(owner, owned string, byReplicaSet bool, suffix string) bool {
	first, second, hasSecond := strings.Cut(suffix, "-")
	switch owner {
	case "Deployment":
		if owned == "ReplicaSet" || byReplicaSet {
			return !hasSecond && isLowerAlphanumeric(first, 1, 16)
		}
		return hasSecond && isLowerAlphanumeric(first, 1, 16) && isLowerAlphanumeric(second, 5, 5)
	case "StatefulSet", "CronJob":
		return !hasSecond && isDigits(first)
	case "Job":
		if hasSecond {
			return isDigits(first) && isLowerAlphanumeric(second, 5, 5)
		}
		return isLowerAlphanumeric(first, 5, 5)
	default:
		return !hasSecond && isLowerAlphanumeric(first, 5, 5)
	}
}

// isDigits reports whether s consists of digits.
func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isLowerAlphanumeric reports whether s consists of least to most lower-case letters and digits.
func isLowerAlphanumeric(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
