package inventory

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/healthscope/healthscope/aai/sync"
)

// UnsyncedPath is the path at which the metrics server lists what A&AI has rejected, and the deletions that are skipped.
const UnsyncedPath = "/aai/unsynced"

// Unsynced is an object that is not as it should be, and that needs the help of a person, or much time.
type Unsynced struct {
	// Tenant is cloud-owner/cloud-region-id/tenant-id, and ID the id of the k8s-resource; both are empty for a module.
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id,omitempty"`
	// GenericVNF and VFModule are the ids of a module whose operational-status A&AI has rejected, and of its VNF.
	GenericVNF string `json:"genericVnf,omitempty"`
	VFModule   string `json:"vfModule,omitempty"`
	// Cluster, Kind, Namespace and Name are those of the Kubernetes resource, as far as they are known.
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Cause is rejected or conflict for what A&AI has rejected, and policy, source or limit for a deletion that is skipped.
	Cause string `json:"cause"`
	// Message says why.
	Message string `json:"message"`
	// Since is since when it has been rejected.
	Since time.Time `json:"since,omitzero"`
}

// serveUnsynced answers with Unsynced as a JSON array.
func (s *Status) serveUnsynced(w http.ResponseWriter, _ *http.Request) {
	body, err := json.MarshalIndent(s.Unsynced(), "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // A reader that has gone needs no answer.
}

// Unsynced returns what A&AI has rejected, and the deletions that are skipped: first those of modules, by VNF and id, then the others, by tenant and id.
func (s *Status) Unsynced() []Unsynced {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Unsynced{}
	for _, t := range s.tenants {
		for key, o := range t.objects {
			if o.cause() != "" {
				r := o.Resource
				all = append(all, o.rejected(Unsynced{Tenant: key.Tenant.String(), ID: key.ID, Cluster: r.Cluster, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}))
			}
		}
		for _, k := range t.skipped {
			all = append(all, Unsynced{Tenant: k.Key.Tenant.String(), ID: k.Key.ID, Cluster: k.Source, Cause: string(k.Cause), Message: k.Message})
		}
	}
	for _, m := range s.vnfs {
		for id, o := range m.objects {
			if o.cause() != "" {
				all = append(all, o.rejected(Unsynced{GenericVNF: id.GenericVNFID, VFModule: id.ID}))
			}
		}
	}
	slices.SortFunc(all, func(a, b Unsynced) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID), cmp.Compare(a.GenericVNF, b.GenericVNF), cmp.Compare(a.VFModule, b.VFModule))
	})
	return all
}

// rejected adds to what is not synced why A&AI has rejected it.
func (o objectStatus) rejected(u Unsynced) Unsynced {
	u.Cause, u.Message, u.Since = o.cause(), o.Message, o.since.UTC().Truncate(time.Second)
	return u
}

// cause says in one word why an object is rejected; empty when it is not.
func (o objectStatus) cause() string {
	if o.State != sync.Failed {
		return ""
	}
	return causeLabels[o.Reason]
}
