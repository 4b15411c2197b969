package bundle

import (
	"bytes"
	"cmp"
	"slices"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// resourceStatusesList is the list of the objects that have no list of their own.
const resourceStatusesList = "resourceStatuses"

// listKind says which objects a list holds.
type listKind struct{ group, version, kind string }

// lists maps kinds to the lists of whole objects, by JSON name.
var lists = map[listKind]string{
	{"", "v1", "Pod"}:                                          "podStatuses",
	{"", "v1", "Service"}:                                      "serviceStatuses",
	{"", "v1", "ConfigMap"}:                                    "configMapStatuses",
	{"apps", "v1", "Deployment"}:                               "deploymentStatuses",
	{"", "v1", "Secret"}:                                       "secretStatuses",
	{"apps", "v1", "DaemonSet"}:                                "daemonSetStatuses",
	{"networking.k8s.io", "v1", "Ingress"}:                     "ingressStatuses",
	{"batch", "v1", "Job"}:                                     "jobStatuses",
	{"apps", "v1", "StatefulSet"}:                              "statefulSetStatuses",
	{"certificates.k8s.io", "v1", "CertificateSigningRequest"}: "csrStatuses",
}

// kindOf is the opposite of lists.
var kindOf = func() map[string]listKind {
	kinds := make(map[string]listKind, len(lists))
	for kind, name := range lists {
		kinds[name] = kind
	}
	return kinds
}()

// listFields are the fields of an object that its list keeps.
var listFields = []string{"apiVersion", "kind", "metadata", "spec", "status"}

// OtherResource is an entry of resourceStatuses, in the form EMCO gave it.
type OtherResource struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Res is the whole object as JSON, which in JSON is a string in base64.
	Res []byte `json:"res"`
}

// fillLists puts whole objects into the lists. It drops the largest lists until
// the rest fits the budget.
func fillLists(status *k8spluginv1alpha1.ResourceBundleStateStatus, items []item, budget int) {
	byList := map[string][]item{}
	for _, it := range items {
		if it.object == nil {
			continue // The object that could be listed may be out of date.
		}
		name := listOf(it.result)
		byList[name] = append(byList[name], it)
	}
	fields := status.Lists()
	for name, members := range byList {
		slices.SortFunc(members, compareByName)
		*fields[name] = encodeList(name, members, budget)
		status.Truncated = status.Truncated || *fields[name] == nil
	}
	dropLists(status, func() bool { return listsSize(status) <= budget })
}

// listOf returns the name of the list that an object is in.
func listOf(r healthscope.Result) string {
	return cmp.Or(lists[listKind{r.Group, r.Version, r.Kind}], resourceStatusesList)
}

// compareByName sorts the items of a list by namespace and name, and those of resourceStatuses further by kind.
func compareByName(a, b item) int {
	x, y := a.result.Key, b.result.Key
	return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), x.Compare(y))
}

// encodeList returns the JSON of a list, without blanks because EMCO's readers
// search it for text. It stops with nil as soon as the list alone exceeds the budget,
// because fillLists would drop it.
func encodeList(name string, items []item, budget int) k8spluginv1alpha1.RawList {
	var list bytes.Buffer
	separator := byte('[')
	for _, it := range items {
		list.WriteByte(separator)
		list.Write(encodeEntry(name, it))
		if list.Len() >= budget {
			return nil
		}
		separator = ','
	}
	list.WriteByte(']')
	return list.Bytes()
}

// encodeEntry returns the JSON of an entry of a list.
func encodeEntry(list string, it item) []byte {
	kept := trim(it.object)
	if list != resourceStatusesList {
		kept = selectFields(kept, listFields)
	}
	kept, _ = clone(kept).(map[string]any)
	redactValue(kept)
	if list != resourceStatusesList {
		if isDataHolder(kept) {
			delete(kept, "spec")
			delete(kept, "status")
		}
		return encode(kept)
	}
	r := it.result
	return encode(OtherResource{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Res: encode(kept)})
}

// listsSize returns how many bytes the lists take together.
func listsSize(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := 0
	for name, list := range status.Lists() {
		if len(*list) > 0 {
			size += len(name) + len(*list) + len(`"":,`)
		}
	}
	return size
}

// dropLists drops the largest list until the rest fits or none is left.
func dropLists(status *k8spluginv1alpha1.ResourceBundleStateStatus, fits func() bool) {
	for !fits() {
		largest, size := "", 0
		for name, list := range status.Lists() {
			if len(*list) > size || len(*list) == size && size > 0 && name < largest {
				largest, size = name, len(*list)
			}
		}
		if size == 0 {
			return
		}
		*status.Lists()[largest] = nil
		status.Truncated = true
	}
}
